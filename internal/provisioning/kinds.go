// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	// maxKinds bounds the kinds of an attempt.
	maxKinds        = 200
	maxResourceName = 253
)

// kindMapper caches the requested mappings of the target's kinds.
type kindMapper struct {
	meta.MultiRESTMapper // empty; clients call RESTMapping only

	ctx context.Context //nolint:containedctx // of the attempt, which a mapper does not outlive
	api rest.Interface

	mu       sync.Mutex
	mappings map[schema.GroupVersionKind]*meta.RESTMapping
	desired  map[schema.GroupVersionKind]bool
}

func newKindMapper(ctx context.Context, api rest.Interface) *kindMapper {
	return &kindMapper{ctx: ctx, api: api, mappings: map[schema.GroupVersionKind]*meta.RESTMapping{}}
}

func (k *kindMapper) setDesired(objects []object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.desired = map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		k.desired[o.gvk] = true
	}
}

// useContext uses ctx for requests until the returned function is called.
func (k *kindMapper) useContext(ctx context.Context) (end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.ctx
	k.ctx = ctx
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.ctx = old
	}
}

// RESTMapping implements meta.RESTMapper. Unknown kinds are not cached, because their CRD may be
// applied.
func (k *kindMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(versions) == 0 {
		var err error
		if versions, err = k.groupVersions(kind.Group); err != nil {
			return nil, err
		}
	}
	for _, version := range versions {
		gvk := kind.WithVersion(version)
		if k.mappings[gvk] == nil {
			if err := k.readGroupVersion(gvk); err != nil {
				return nil, err
			}
		}
		if mapping := k.mappings[gvk]; mapping != nil {
			return mapping, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

func (k *kindMapper) groupVersions(group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	type version struct{ Version string }
	var of struct {
		PreferredVersion version
		Versions         []version
	}
	if found, err := k.getJSON(&of, "apis", group); err != nil || !found {
		return nil, err
	}
	versions := []string{of.PreferredVersion.Version}
	for _, v := range of.Versions {
		if v != of.PreferredVersion {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

func (k *kindMapper) readGroupVersion(gvk schema.GroupVersionKind) error {
	path := []string{"apis", gvk.Group, gvk.Version}
	if gvk.Group == "" {
		path = []string{"api", gvk.Version}
	}
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if found, err := k.getJSON(&list, path...); err != nil || !found {
		return err
	}
	for _, r := range list.Resources {
		kind := gvk.GroupVersion().WithKind(r.Kind)
		if strings.Contains(r.Name, "/") || kind != gvk && !k.desired[kind] || k.mappings[kind] != nil {
			continue
		}
		if len(r.Name) > maxResourceName {
			return fmt.Errorf("the target names the resource of %s with %d bytes, and at most %d are read", kind.Kind, len(r.Name), maxResourceName)
		}
		if len(k.mappings) >= maxKinds {
			return newInvalidError("the steps have more than %d kinds: make several Provisions of them", maxKinds)
		}
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		kind.Kind = strings.Clone(kind.Kind)
		k.mappings[kind] = &meta.RESTMapping{Resource: gvk.GroupVersion().WithResource(r.Name), GroupVersionKind: kind, Scope: scope}
	}
	return nil
}

// getJSON decodes the response at path and reports whether it exists. encoding/json skips unknown
// fields without allocating.
func (k *kindMapper) getJSON(into any, path ...string) (bool, error) {
	for _, part := range path {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/%?#") {
			return false, nil
		}
	}
	res := k.api.Get().AbsPath(path...).Do(k.ctx)
	err := res.Error() // Raw would drop the server's message
	if apierrors.IsNotFound(err) && strings.Join(path, "/") == "api/v1" {
		return false, fmt.Errorf("the target has no /api/v1, which each API server has: correct server of the kubeconfig: %w", err)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, err := res.Raw()
	if err != nil {
		return false, err
	}
	if json.Unmarshal(text, into) != nil {
		return false, errors.New("the target describes its kinds in JSON that cannot be read")
	}
	return true, nil
}
