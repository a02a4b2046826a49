// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/offline"
)

// A Forbidden of admission is about the object and reported with the others; a missing right is an
// error.
func TestForbiddenByAdmissionIsRefused(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	for _, c := range []struct {
		reason string
		judged bool
	}{
		{`ValidatingAdmissionPolicy 'weir-backendpools' with binding 'weir-backendpools' denied request: namespace shop may not bind`, true},
		{"exceeded quota: lb, requested: services.loadbalancers=1, used: services.loadbalancers=2, limited: services.loadbalancers=2", true},
		{`User "ci" cannot create resource "services" in API group "" in the namespace "default"`, false},
	} {
		api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewForbidden(services, "checked", errors.New(c.reason))
			},
		})
		o := &offline.Objects{}
		if err := errors.Join(o.DecodeFile("web.yaml", strings.NewReader("{apiVersion: v1, kind: Service, metadata: {name: checked}, spec: {ports: [{port: 80}]}}"))...); err != nil {
			t.Fatal(err)
		}
		refused, err := o.ValidateOnServer(t.Context(), api)
		if judged := len(refused) == 1 && err == nil; judged != c.judged {
			t.Errorf("%s: refused %v, error %v", c.reason, refused, err)
		}
	}
}
