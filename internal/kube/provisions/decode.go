// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// What a step may be: its sources are anybody's who writes a namespace, and the memory is everybody's.
const (
	// mostOfSources bounds the bytes of all sources of a step. A full ConfigMap has as many.
	mostOfSources = 1 << 20
	// mostObjects bounds its objects: the inventory is in a status.
	mostObjects = 1000
	// mostValues bounds the values of one text: a value of two bytes takes a hundred once it is read.
	mostValues = 200_000
)

// text is one of a source.
type text struct {
	data   []byte
	name   string // for people
	secret bool
}

// decode reads the objects of texts. One step at a time is read: the memory that it takes is a
// multiple of the text's.
func (r *Room) decode(ctx context.Context, texts []text) ([]object, error) {
	r.decoding.Lock()
	defer r.decoding.Unlock()
	var all []object
	for _, t := range texts {
		objects, err := t.objects(ctx, mostObjects-len(all))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, invalid("%s: %w", t.name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// objects reads those of a text. What is wrong with one that comes from a Secret is said without its
// words.
func (t text) objects(ctx context.Context, most int) ([]object, error) {
	var all []object
	documents, values := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(t.data))), mostValues
	for n := 1; ctx.Err() == nil; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var fields map[string]any
		if err == nil {
			err = plain(document, &values)
		}
		if err == nil {
			err = yaml.Unmarshal(document, &fields)
		}
		if _, known := errors.AsType[notPlainError](err); err != nil && t.secret && !known {
			return nil, fmt.Errorf("object %d: no YAML that can be read", n)
		}
		if err == nil && len(fields) > 0 { // a comment alone has none
			all, err = t.add(all, fields, most)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
	}
	return nil, ctx.Err()
}

// notPlainError is what a document has that is not read. It quotes nothing.
type notPlainError string

// Error implements error.
func (e notPlainError) Error() string { return string(e) }

// plain refuses a document of more values than are left, and one with aliases: each stands for a text
// that may be large, so that a small document becomes one without bound.
func plain(document []byte, left *int) error {
	var root yamlnode.Node
	if err := yamlnode.Unmarshal(document, &root); err != nil {
		return err
	}
	for open := []*yamlnode.Node{&root}; len(open) > 0; {
		node := open[len(open)-1]
		open = append(open[:len(open)-1], node.Content...)
		if node.Kind == yamlnode.AliasNode || node.Anchor != "" {
			return notPlainError("anchors and aliases (&name, *name) are not read: write out what they stand for")
		}
		if *left--; *left < 0 {
			return notPlainError(fmt.Sprintf("with it there are more than %d values", mostValues))
		}
	}
	return nil
}

// add adds the object that has these fields, or those of a list.
func (t text) add(all []object, fields map[string]any, most int) ([]object, error) {
	u := &unstructured.Unstructured{Object: fields}
	one := func(o runtime.Object) error {
		item, ok := o.(*unstructured.Unstructured)
		if !ok {
			return errors.New("its items are no objects")
		}
		if len(all) == most {
			return fmt.Errorf("it is one too many: a step has at most %d objects", mostObjects)
		}
		next := object{Unstructured: item, secret: t.secret || isSecret(item)}
		all = append(all, next)
		return next.check()
	}
	if u.IsList() {
		return all, u.EachListItem(one)
	}
	return all, one(u)
}

// check says what an object lacks.
func (o object) check() error {
	switch {
	case o.GetAPIVersion() == "" || o.GetKind() == "":
		return errors.New("it has no apiVersion and kind")
	case o.GetName() == "":
		return errors.New("it has no metadata.name")
	case strings.ContainsRune(o.GetName()+o.GetNamespace()+o.GetKind()+o.GroupVersionKind().Group, '/'):
		return errors.New("a name has a slash")
	}
	return nil
}

func isSecret(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// secretsOf are what the Secrets among objects hold.
func secretsOf(objects []object) []string {
	var all []string
	for _, o := range objects {
		var secret corev1.Secret
		if !isSecret(o.Unstructured) || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &secret) != nil {
			continue // the API server refuses one that is none, and its words are left out
		}
		for _, v := range secret.Data {
			all = append(all, string(v))
		}
		for _, v := range secret.StringData {
			all = append(all, v)
		}
	}
	return all
}
