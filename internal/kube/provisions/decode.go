// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/internal/provision"
)

// Tenants write the sources, and all steps share the memory.
const (
	// mostOfSources is in bytes, the size limit of a ConfigMap.
	mostOfSources = 1 << 20
	// mostObjects is per step, maxOfProvision for all steps, which stay in memory during an
	// attempt.
	mostObjects, maxOfProvision = 1000, 4000
	// mostValues is per text.
	mostValues = 200_000
	// maxDecoding bounds the estimated memory for one document, in bytes: separatorCost per
	// character that may begin a value, byteCost per byte, and escapeCost per character JSON
	// escapes.
	maxDecoding                         = 64 << 20
	separatorCost, byteCost, escapeCost = 448, 4, 16
	separatorTime, timeOfKilobyte       = 5 * time.Microsecond, 50 * time.Microsecond
)

type text struct {
	data   []byte
	name   string
	secret bool
	// rendered marks the output of a chart, in which Helm accepts duplicate keys.
	rendered bool
}

func decode(ctx context.Context, texts []text) ([]object, error) {
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

// separators counts the characters that may delimit a value, at least one per value, and those JSON
// escapes.
func separators(document []byte) (values, escaped int) {
	for _, c := range document {
		switch c {
		case ',', ':', '-', '?', '[', '{', '\n', '\r':
			values++
		case '<', '>', '&':
			escaped++
		}
	}
	return values, escaped
}

func decodingTime(texts []text) time.Duration {
	var all time.Duration
	for _, t := range texts {
		values, _ := separators(t.data)
		all += time.Duration(values)*separatorTime + time.Duration(len(t.data)>>10)*timeOfKilobyte
	}
	return all
}

func fits(document []byte) error {
	values, escaped := separators(document)
	if takes := values*separatorCost + len(document)*byteCost + escaped*escapeCost; takes > maxDecoding {
		return notPlainError(fmt.Sprintf("decoding it may take %d MiB of memory, and at most %d MiB are available: it has %d KiB with %d separators of values; split it into several objects",
			takes>>20, maxDecoding>>20, len(document)>>10, values))
	}
	return nil
}

// utf8Mark is the UTF-8 byte order mark.
const utf8Mark = "\ufeff"

// objects reads the objects of a text. Everything but comments must belong to an object. Errors do
// not quote a Secret.
func (t text) objects(ctx context.Context, limit int) ([]object, error) {
	var all []object
	documents, values := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(t.data, []byte(utf8Mark))))), mostValues
	for n := 1; ctx.Err() == nil; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var fields map[string]json.RawMessage
		if err == nil {
			fields, err = t.decodeDocument(document, &values)
		}
		if _, known := errors.AsType[notPlainError](err); err != nil && t.secret && !known {
			return nil, fmt.Errorf("object %d: no YAML that can be read", n)
		}
		if err == nil && fields != nil {
			all, err = t.add(all, fields, limit)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
	}
	return nil, ctx.Err()
}

// decodeDocument returns a document as JSON, or nil if it has only comments. left is the number of
// values still allowed.
func (t text) decodeDocument(document []byte, left *int) (fields map[string]json.RawMessage, err error) {
	if err = fits(document); err != nil {
		return nil, err
	}
	root, err := plain(document, left)
	if err != nil || root == nil {
		return nil, err
	}
	if root.Kind != yamlnode.MappingNode || len(root.Content) == 0 {
		return nil, notPlainError("it is no object: want apiVersion, kind and metadata, and for several objects a line --- between them, or kind List with items")
	}
	if err := once(root, !t.rendered); err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSON(document)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// notPlainError describes an unsupported document without quoting it.
type notPlainError string

func (e notPlainError) Error() string { return string(e) }

// plain returns the root node of a document, or nil without a value. It rejects aliases, which can
// expand without bound, and text after the end, which would be ignored.
func plain(document []byte, left *int) (*yamlnode.Node, error) {
	var root, next yamlnode.Node
	reads := yamlnode.NewDecoder(bytes.NewReader(document))
	if err := reads.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for open := []*yamlnode.Node{&root}; len(open) > 0; {
		node := open[len(open)-1]
		open = append(open[:len(open)-1], node.Content...)
		if node.Kind == yamlnode.AliasNode || node.Anchor != "" {
			return nil, notPlainError("anchors and aliases (&name, *name) are not read: write out what they stand for")
		}
		if node.Tag == "!!merge" {
			return nil, notPlainError("merges (<<) are not read: write out what they stand for")
		}
		if *left--; *left < 0 {
			return nil, notPlainError(fmt.Sprintf("with it there are more than %d values", mostValues))
		}
	}
	if err := reads.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, notPlainError("text follows its end: put a line --- between objects, also between those in JSON")
	}
	if is := root.Content[0]; is.Kind != yamlnode.ScalarNode || is.Value != "" || is.Style != 0 {
		return is, nil
	}
	return nil, nil
}

// once rejects duplicate keys, a sign of a missing --- line. Unless below is set it checks the top
// level only, because Helm accepts the others.
func once(root *yamlnode.Node, below bool) error {
	for open := []*yamlnode.Node{root}; len(open) > 0; {
		node := open[len(open)-1]
		open = open[:len(open)-1]
		if below {
			open = append(open, node.Content...)
		}
		if node.Kind != yamlnode.MappingNode {
			continue
		}
		has := make(map[string]bool, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yamlnode.ScalarNode {
				return notPlainError(fmt.Sprintf("line %d: a key is no text", key.Line))
			}
			if has[key.Value] {
				return notPlainError(fmt.Sprintf("line %d: a key is there twice: write it once, or put a line --- between two objects", key.Line))
			}
			has[key.Value] = true
		}
	}
	return nil
}

func (t text) add(all []object, fields map[string]json.RawMessage, limit int) ([]object, error) {
	one := func(fields map[string]json.RawMessage) error {
		if len(all) == limit {
			return fmt.Errorf("it is one too many: a step has at most %d objects", mostObjects)
		}
		next, err := objectOf(fields)
		if err != nil {
			return err
		}
		next.secret = t.secret || next.isSecret()
		all = append(all, next)
		return next.check()
	}
	items, is, err := itemsOf(fields)
	if err != nil {
		return all, err
	}
	if !is {
		return all, one(fields)
	}
	for _, item := range items {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || fields == nil {
			return all, errors.New("its items are no objects")
		}
		if err := one(fields); err != nil {
			return all, err
		}
	}
	return all, nil
}

// itemsOf returns the items of a list: a kind ending in List, without a name.
func itemsOf(fields map[string]json.RawMessage) (items []json.RawMessage, is bool, err error) {
	kind, metadata := textOf(fields["kind"]), fieldsOf(fields["metadata"])
	if !strings.HasSuffix(kind, "List") || metadata["name"] != nil {
		return nil, false, nil
	}
	if fields["metadata"] != nil && metadata == nil && string(fields["metadata"]) != "null" {
		return nil, true, errors.New("it is a list, and its metadata is no object")
	}
	for key := range fields {
		switch key {
		case "apiVersion", "kind", "metadata", "items":
		default:
			return nil, true, errors.New("it is a list, and has more than apiVersion, kind, metadata and items")
		}
	}
	for key := range metadata {
		switch key {
		case "resourceVersion", "selfLink", "continue", "remainingItemCount": // set by API servers
		default:
			return nil, true, errors.New("it is a list, and its metadata is that of an object")
		}
	}
	if json.Unmarshal(fields["items"], &items) != nil || items == nil {
		return nil, true, errors.New("it is a list, and its items are none")
	}
	return items, true, nil
}

func objectOf(fields map[string]json.RawMessage) (object, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return object{}, err
	}
	metadata := fieldsOf(fields["metadata"])
	o := object{
		gvk:       schema.FromAPIVersionAndKind(textOf(fields["apiVersion"]), textOf(fields["kind"])),
		namespace: textOf(metadata["namespace"]), name: textOf(metadata["name"]), body: body,
	}
	return o, nil
}

func fieldsOf(text json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	return fields
}

func textOf(text json.RawMessage) (s string) {
	_ = json.Unmarshal(text, &s)
	return s
}

func (o object) check() error {
	switch {
	case o.gvk.Version == "" || o.gvk.Kind == "":
		return errors.New("it has no apiVersion and kind")
	case o.name == "":
		return errors.New("it has no metadata.name")
	case strings.ContainsRune(o.name+o.namespace+o.gvk.Kind+o.gvk.Group, '/'):
		return errors.New("a name has a slash")
	}
	return nil
}

func (o object) isSecret() bool { return o.gvk.GroupKind() == schema.GroupKind{Kind: "Secret"} }

func hide(log *provision.Log, objects []object) {
	for _, o := range objects {
		if !o.isSecret() {
			continue
		}
		var all []string
		for _, value := range fieldsOf(fieldsOf(o.body)["data"]) { // the API server rejects invalid base64
			var data []byte
			if json.Unmarshal(value, &data) == nil {
				all = append(all, string(data))
			}
		}
		for _, value := range fieldsOf(fieldsOf(o.body)["stringData"]) {
			all = append(all, textOf(value))
		}
		log.Hide(all...)
	}
}
