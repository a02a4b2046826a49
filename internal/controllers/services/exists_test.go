// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveObject is the object that the API server has, or the error of its read.
type liveObject struct {
	client.Reader
	uid types.UID
	err error
}

func (o liveObject) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetUID(o.uid)
	return o.err
}

// The API server no longer has a Service if it has none of its name, or another one. An error proves neither.
func TestAServiceIsConfirmedByItsUID(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	for name, tt := range map[string]struct {
		live   liveObject
		exists bool
		failed bool
	}{
		"it exists":                 {liveObject{uid: "u1"}, true, false},
		"it was recreated":          {liveObject{uid: "u2"}, false, false},
		"none of its name":          {liveObject{err: apierrors.NewNotFound(services, "web")}, false, false},
		"no permission":             {liveObject{uid: "u1", err: apierrors.NewForbidden(services, "web", nil)}, false, true},
		"no response of the server": {liveObject{err: apierrors.NewServiceUnavailable("away")}, false, true},
	} {
		r := &Reconciler{cfg: Config{API: API{Reader: tt.live}}}
		if exists, err := (serviceCluster{r}).Exists(t.Context(), "shop/web", "u1"); exists != tt.exists || (err != nil) != tt.failed {
			t.Errorf("%s: exists %v, %v", name, exists, err)
		}
	}
}
