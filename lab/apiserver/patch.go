// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const applyPatchType = "application/apply-patch"

func (s *Server) patchObject(r *request) (object, error) {
	live, err := s.getObject(r)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(live)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", live, err)
	}
	after, err := patchBytes(r, before, live)
	if err != nil {
		return nil, err
	}
	next, err := decodeObject(r.kind, runtime.ContentTypeJSON, after)
	if err != nil {
		return nil, err
	}
	return s.replaceObject(r, r.kind.managers.updateOwnership(r.kind, live, next, r), live)
}

func patchBytes(r *request, before []byte, live object) ([]byte, error) {
	name, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	switch types.PatchType(name) {
	case types.JSONPatchType:
		p, err := jsonpatch.DecodePatch(r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		after, err := p.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, nil
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		if r.kind.crd == nil {
			after, err := strategicpatch.StrategicMergePatch(before, r.body, live)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return after, nil
		}
	}
	return nil, unsupportedMedia(name)
}

func (s *Server) applyObject(r *request) (object, int, error) {
	k := r.kind
	if r.query.Get("fieldManager") == "" {
		return nil, 0, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	patch := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(r.body, &patch.Object); err != nil {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	live, err := s.getObject(r)
	fresh := apierrors.IsNotFound(err)
	switch {
	case fresh && r.subresource != "":
		return nil, 0, err
	case fresh:
		live = k.newObject()
	}
	next, err := k.managers.applyPatch(k, live, patch, r)
	if err != nil {
		return nil, 0, err
	}
	if fresh {
		if next.GetName() == "" {
			next.SetName(r.name)
		}
		o, err := s.createObject(r, next)
		return o, http.StatusCreated, err
	}
	o, err := s.replaceObject(r, next, live)
	return o, http.StatusOK, err
}
