// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/k8s/metadata"
)

// A leader that is no pod has no ServiceAccount: the rights of the caller's kubeconfig are checked instead, unless the user
// names an account.
func TestALeaderOutsideOfTheCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		holder string
		pods   []client.Object
		named  bool
		want   string
	}{
		"no leader":       {"", nil, false, "ServiceAccount weir-system/weir may not "},
		"a process":       {"laptop_0c1f", nil, false, "your account may not "},
		"a host's name":   {"my laptop_0c1f", nil, false, "your account may not "},
		"a pod":           {"weir-0_0c1f", []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-0"}}}, false, "ServiceAccount weir-system/weir may not "},
		"a Deployment":    {"laptop_0c1f", []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir", Labels: map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": "controller"}}}}, false, "ServiceAccount weir-system/weir may not "},
		"a named account": {"laptop_0c1f", nil, true, "ServiceAccount weir-system/weir may not "},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: app.LeaseName}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &tt.holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(time.Hour))),
		}}
		scheme := metadata.Scheme()
		if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tt.pods, lease)...).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				switch o.(type) {
				case *authorizationv1.SubjectAccessReview, *authorizationv1.SelfSubjectAccessReview: // not allowed
				default:
					t.Errorf("%s: creates %T", name, o)
				}
				return nil
			},
		}).Build()
		d := Doctor{API: api, Namespace: "weir-system", ServiceAccount: "weir", IsAccountNamed: tt.named}
		if !d.IsAccountNamed {
			d.outside, d.leaseNamespace = d.findOutside(t.Context())
		}
		checks := d.permissionChecks()
		at := slices.IndexFunc(checks, func(c namedCheck) bool { return c.name == "rights weir-controller" })
		if got := checks[at].check(t.Context())[0]; got.Result != Fail || !strings.HasPrefix(got.Why, tt.want) {
			t.Errorf("%s: %+v, want %q", name, got, tt.want)
		}
		pods := (&installed{Doctor: d}).checkPods(t.Context())[0]
		if outside := strings.HasPrefix(tt.want, "your"); strings.Contains(pods.Why, "none is needed") != outside || (checks[0].name == "rights") != outside {
			t.Errorf("%s: pods %+v, first check %s", name, pods, checks[0].name)
		}
	}
}

// A cluster without Weir is one finding, with the definitions that are missing. With a Deployment or Lease of Weir, or a named
// account, all checks run.
func TestAClusterWithoutWeir(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "weir", Labels: map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": "controller"}}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: app.LeaseName}}
	for name, tt := range map[string]struct {
		object client.Object
		named  bool
		want   bool
	}{
		"nothing":         {nil, false, true},
		"a named account": {nil, true, false},
		"a Deployment":    {deployment, false, false},
		"a Lease":         {lease, false, false},
	} {
		scheme := metadata.Scheme()
		if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		build := fake.NewClientBuilder().WithScheme(scheme)
		if tt.object != nil {
			build.WithObjects(tt.object)
		}
		d := Doctor{API: build.Build(), Namespace: "weir-system", ServiceAccount: "weir", IsAccountNamed: tt.named}
		if got := d.isAbsent(t.Context()); got != tt.want {
			t.Errorf("%s: absent %v", name, got)
		}
		if tt.want {
			got := d.reportAbsence(t.Context())
			if len(got) != 1 || got[0].Result != Fail || !strings.Contains(got[0].Why, "backendpools.weir.dev, partners.weir.dev") || got[0].Fix == "" {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

// The checks of a cluster without Weir end with that finding. Without the right to see Leases or Deployments all checks run:
// Weir may be there.
func TestChecksOfAClusterWithoutWeir(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"gitVersion":"v1.37.0"}`) }))
	defer server.Close()
	scheme := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const absent = "API server, clock of the API server, installation, other controllers"
	for unseen, isAbsent := range map[string]bool{"": true, "leases": false, "deployments": false} {
		forbid := func(o client.ObjectList) error {
			_, leases := o.(*coordinationv1.LeaseList)
			_, deployments := o.(*appsv1.DeploymentList)
			if leases && unseen == "leases" || deployments && unseen == "deployments" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: unseen}, "", nil)
			}
			return nil
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
				return errors.Join(forbid(o), c.List(ctx, o, opts...))
			},
		}).Build()
		var names []string
		for _, c := range (Doctor{REST: &rest.Config{Host: server.URL}, API: api, Namespace: "weir-system", ServiceAccount: "weir"}).RunChecks(t.Context()).Checks {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, ", "); (got == absent) != isAbsent || slices.Contains(names, "installation") != isAbsent {
			t.Errorf("without the right to list %q: %s", unseen, got)
		}
	}
}
