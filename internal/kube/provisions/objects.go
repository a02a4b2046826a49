// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// object is one that is applied.
type object struct {
	*unstructured.Unstructured
	// secret is whether it is a Secret, or comes from one: what servers say of it may quote it.
	secret bool
	home   string // where it goes if it names no namespace; empty is that of the target
}

// String names it for people.
func (o object) String() string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// first is whether others may need it to be there.
func (o object) first() bool {
	kind := o.GroupVersionKind().GroupKind()
	return kind == schema.GroupKind{Kind: "Namespace"} || kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// read reads the objects of a step.
func (a *run) read(ctx context.Context, step *v1alpha1.ManifestsStep) ([]object, error) {
	var texts []text
	size := 0
	for _, source := range step.Sources {
		of, err := a.source(ctx, source)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if size += len(of[key]); size > mostOfSources {
				return nil, invalid("the sources of a step have more than %d MiB: make several of it", mostOfSources>>20)
			}
			texts = append(texts, text{of[key], key + " of " + cmpName(source), source.Secret != ""})
		}
	}
	return a.decodes(ctx, texts)
}

// decodes reads the objects of texts, those that others need first, and keeps what is secret of them out of the log.
func (a *run) decodes(ctx context.Context, texts []text) ([]object, error) {
	all, err := a.room.decode(ctx, texts)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y object) int {
		switch {
		case x.first() == y.first():
			return 0
		case x.first():
			return -1
		}
		return 1
	})
	a.log.Hide(secretsOf(all)...)
	return all, nil
}

func cmpName(s v1alpha1.ManifestSource) string {
	if s.Secret != "" {
		return "Secret " + s.Secret
	}
	return "ConfigMap " + s.ConfigMap
}

// source reads the texts of a source from the namespace of the Provision, and from no other.
func (a *run) source(ctx context.Context, s v1alpha1.ManifestSource) (map[string][]byte, error) {
	texts := map[string][]byte{}
	if s.Secret != "" {
		var secret corev1.Secret
		if err := a.room.Live.Get(ctx, client.ObjectKey{Namespace: a.p.Namespace, Name: s.Secret}, &secret); err != nil {
			return nil, err
		}
		return secret.Data, nil
	}
	var text corev1.ConfigMap
	if err := a.room.Live.Get(ctx, client.ObjectKey{Namespace: a.p.Namespace, Name: s.ConfigMap}, &text); err != nil {
		return nil, err
	}
	for key, value := range text.Data {
		texts[key] = []byte(value)
	}
	maps.Copy(texts, text.BinaryData)
	return texts, nil
}

// contents are what a digest is made of.
func contents(objects []object) []map[string]any {
	all := make([]map[string]any, len(objects))
	for i, o := range objects {
		all[i] = o.Object
	}
	return all
}

// inventory are the names of objects.
func inventory(objects []object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, strings.Join([]string{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
	}
	return union(nil, all)
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// parseID reads a name of an inventory.
func parseID(id string) (schema.GroupKind, client.ObjectKey, error) {
	part := strings.Split(id, "/")
	if len(part) != 4 {
		return schema.GroupKind{}, client.ObjectKey{}, errors.New("no name of an inventory")
	}
	return schema.GroupKind{Group: part[0], Kind: part[1]}, client.ObjectKey{Namespace: part[2], Name: part[3]}, nil
}
