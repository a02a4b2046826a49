// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func (s *Server) removeObject(r *request) (runtime.Object, int, error) {
	k := r.kind
	options, err := deleteOptions(r)
	if err != nil {
		return nil, 0, err
	}
	live, err := s.getObject(r)
	if err != nil {
		return nil, 0, err
	}
	if err := checkPreconditions(r, options, live); err != nil {
		return nil, 0, err
	}
	next := copyObject(live)
	dry := r.dryRun() || len(options.DryRun) > 0
	if !k.isTerminating(next) {
		if !dry {
			next = s.deleteObject(k, live)
		}
		if k.returnsDeleted {
			return next, http.StatusOK, nil
		}
		return deletedStatus(r, live.GetUID()), http.StatusOK, nil
	}
	if live.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		next.SetDeletionTimestamp(&now)
		if k.setTerminating == nil {
			next.SetDeletionGracePeriodSeconds(new(int64(0)))
		}
		if next.GetGeneration() > 0 {
			next.SetGeneration(next.GetGeneration() + 1)
		}
		if k.setTerminating != nil {
			k.setTerminating(next)
		}
		if !dry {
			s.commitObject(k, next, live, watch.Modified)
			s.scheduleCollection(k, next)
		}
	}
	return next, http.StatusOK, nil
}

func (k *resourceKind) isTerminating(o object) bool {
	return len(o.GetFinalizers()) > 0 || k.setTerminating != nil
}

func deletedStatus(r *request, uid types.UID) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.gvk.Group, Kind: r.kind.resource, UID: uid},
	}
}

func deleteOptions(r *request) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	if len(r.body) == 0 {
		return options, nil
	}
	name, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	if name == runtime.ContentTypeProtobuf {
		if _, _, err := inProtobuf.Serializer.Decode(r.body, nil, &options); err != nil {
			return options, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	if err := json.Unmarshal(r.body, &options); err != nil {
		return options, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

// checkPreconditions checks the preconditions of a delete.
func checkPreconditions(r *request, options metav1.DeleteOptions, live object) error {
	p := options.Preconditions
	if p == nil {
		return nil
	}
	got := schema.GroupResource{Group: r.kind.gvk.Group, Resource: r.kind.gvk.Kind}
	if p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(got, r.name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, live.GetUID())) //nolint:staticcheck // the words of the API server
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(got, r.name, fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", //nolint:staticcheck // the words of the API server
			*p.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}
