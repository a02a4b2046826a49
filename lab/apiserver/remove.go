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

// remove deletes an object, or marks it as deleted while it has finalizers.
func (s *Server) remove(r *request) (runtime.Object, int, error) {
	k := r.kind
	options, err := deleteOptions(r)
	if err != nil {
		return nil, 0, err
	}
	live, err := s.get(r)
	if err != nil {
		return nil, 0, err
	}
	if err := wanted(r, options, live); err != nil {
		return nil, 0, err
	}
	next := copyOf(live)
	dry := r.dryRun() || len(options.DryRun) > 0
	if !k.terminates(next) {
		if !dry {
			next = s.gone(k, live)
		}
		if k.returned {
			return next, http.StatusOK, nil
		}
		return deleted(r, live.GetUID()), http.StatusOK, nil
	}
	if live.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		next.SetDeletionTimestamp(&now)
		if k.terminating == nil {
			next.SetDeletionGracePeriodSeconds(new(int64(0)))
		}
		if next.GetGeneration() > 0 {
			next.SetGeneration(next.GetGeneration() + 1)
		}
		if k.terminating != nil {
			k.terminating(next)
		}
		if !dry {
			s.commit(k, next, live, watch.Modified)
			s.mayBeCollected(k, next)
		}
	}
	return next, http.StatusOK, nil
}

// terminates reports whether a deleted object persists for a while.
func (k *kind) terminates(o object) bool {
	return len(o.GetFinalizers()) > 0 || k.terminating != nil
}

func deleted(r *request, uid types.UID) *metav1.Status {
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

// wanted checks the preconditions of a delete.
func wanted(r *request, options metav1.DeleteOptions, live object) error {
	p := options.Preconditions
	if p == nil {
		return nil
	}
	is := schema.GroupResource{Group: r.kind.gvk.Group, Resource: r.kind.gvk.Kind}
	if p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(is, r.name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, live.GetUID())) //nolint:staticcheck // the words of the API server
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(is, r.name, fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", //nolint:staticcheck // the words of the API server
			*p.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}
