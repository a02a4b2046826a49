// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExplainedObject(t *testing.T) {
	for argument, want := range map[string][]string{
		"service/web": {"service", "web"},
		"node/n1":     {"node", "n1"},
		"web":         {"web"},
		"svc/":        {"svc", ""},
	} {
		if got := splitKind([]string{argument}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", argument, got, want)
		}
	}
	if two := []string{"service", "web"}; !slices.Equal(splitKind(two), two) {
		t.Errorf("%q is split", two)
	}
}

// The error of a missing object has the next command.
func TestMissingExplainedObjects(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{}, "web")
	unserved := error(&meta.NoKindMatchError{})
	forbidden := errors.New("forbidden")
	for _, tt := range []struct {
		kind string
		err  error
		want string
	}{
		{"svc", missing, `there is no Service "web" in namespace shop: kubectl get services -n shop lists them`},
		{"gateway", missing, `there is no Gateway "web" in namespace shop: kubectl get gateways -n shop lists them`},
		{"bp", missing, `there is no BackendPool "web" in namespace shop: kubectl get backendpools -A lists them; weir explain service NAME -n shop shows those of a Service`},
		{"node", missing, `there is no node "web": kubectl get nodes lists them`},
		{"gateway", unserved, "the API server does not serve Gateways: the CRDs of Gateway API are not installed"},
		{"service", unserved, unserved.Error()},
		{"service", forbidden, "forbidden"},
	} {
		if got := describeMissing(tt.err, tt.kind, "shop", "web").Error(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s, %v: %q, want %q", tt.kind, tt.err, got, tt.want)
		}
	}
}
