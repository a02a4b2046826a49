// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery ignores requests for aggregated discovery, which clients have to support.
func (s *Server) serveDiscovery(path string) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path {
	case "api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}, nil
	case "apis":
		return s.apiGroups(), nil
	case "version":
		return &versionInfo{Info: version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}}, nil
	}
	gv, isCore := strings.CutPrefix(path, "api/")
	if !isCore {
		gv = strings.TrimPrefix(path, "apis/")
	}
	if len(s.kinds[gv]) > 0 {
		return s.apiResources(gv), nil
	}
	for _, g := range s.apiGroups().Groups {
		if g.Name == gv {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return &g, nil
		}
	}
	return nil, errNoPath
}

type versionInfo struct {
	metav1.TypeMeta
	version.Info
}

// DeepCopyObject implements runtime.Object.
func (v *versionInfo) DeepCopyObject() runtime.Object { next := *v; return &next }

func (s *Server) apiGroups() *metav1.APIGroupList {
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for gv := range s.kinds {
		group, v, in := strings.Cut(gv, "/")
		if !in {
			continue
		}
		got := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: v}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{got}, PreferredVersion: got})
	}
	slices.SortFunc(groups.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

func (s *Server) apiResources(gv string) *metav1.APIResourceList {
	resources := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, k := range s.kinds[gv] {
		resources.APIResources = append(resources.APIResources, metav1.APIResource{
			Name: k.resource, SingularName: strings.ToLower(k.gvk.Kind), Namespaced: k.namespaced, Kind: k.gvk.Kind, ShortNames: k.shortNames,
			Verbs: metav1.Verbs{verbCreate, verbDelete, verbGet, verbList, verbPatch, verbUpdate, verbWatch},
		})
		if k.status {
			resources.APIResources = append(resources.APIResources, metav1.APIResource{
				Name: k.resource + "/status", Namespaced: k.namespaced, Kind: k.gvk.Kind, Verbs: metav1.Verbs{verbGet, verbPatch, verbUpdate},
			})
		}
	}
	slices.SortFunc(resources.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return resources
}
