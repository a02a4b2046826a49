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

// What a step may be: its sources are anybody's who writes a namespace, and the memory is everybody's.
const (
	// mostOfSources bounds the bytes of all sources of a step. A full ConfigMap has as many.
	mostOfSources = 1 << 20
	// mostObjects bounds the objects of a step, and maxOfProvision those of all steps: they are remembered for an attempt.
	mostObjects, maxOfProvision = 1000, 4000
	// mostValues bounds the values of one text.
	mostValues = 200_000
	// maxDecoding bounds the memory that decoding one document may take, by estimate: separatorCost for each character that
	// may begin a value, byteCost for each byte, and escapeCost for each that JSON escapes.
	maxDecoding                         = 64 << 20
	separatorCost, byteCost, escapeCost = 448, 4, 16
	separatorTime, timeOfKilobyte       = 5 * time.Microsecond, 50 * time.Microsecond
)

// text is one of a source.
type text struct {
	data   []byte
	name   string // for people
	secret bool
	// rendered is true if it comes from a chart, which Helm takes though a key is there twice.
	rendered bool
}

// decode reads the objects of texts, one document at a time.
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

// separators counts the characters that may begin a value or end one, and those that JSON escapes. A document has no more
// values than separators, whatever is quoted in it.
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

// decodingTime estimates how long a processor decodes texts.
func decodingTime(texts []text) time.Duration {
	var all time.Duration
	for _, t := range texts {
		values, _ := separators(t.data)
		all += time.Duration(values)*separatorTime + time.Duration(len(t.data)>>10)*timeOfKilobyte
	}
	return all
}

// fits refuses a document that takes too much memory to decode, before it is.
func fits(document []byte) error {
	values, escaped := separators(document)
	if takes := values*separatorCost + len(document)*byteCost + escaped*escapeCost; takes > maxDecoding {
		return notPlainError(fmt.Sprintf("decoding it may take %d MiB of memory, and at most %d MiB are available: it has %d KiB with %d separators of values; split it into several objects",
			takes>>20, maxDecoding>>20, len(document)>>10, values))
	}
	return nil
}

// utf8Mark may begin a text; it says that this is UTF-8.
const utf8Mark = "\ufeff"

// objects reads those of a text: each part of it but comments belongs to one of them, or it is refused. What is wrong
// with one that comes from a Secret is said without its words.
func (t text) objects(ctx context.Context, most int) ([]object, error) {
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
		if err == nil && fields != nil { // a comment alone has none
			all, err = t.add(all, fields, most)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
	}
	return nil, ctx.Err()
}

// decodeDocument returns the fields of a document as JSON; nil if it has comments alone. left is how many values it may
// have.
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

// notPlainError is what a document has that is not read. It quotes nothing.
type notPlainError string

// Error implements error.
func (e notPlainError) Error() string { return string(e) }

// plain returns the root of a document, nil of one without a value. It refuses one of more values than are left, one
// with aliases, of which each stands for a text that may be large, so that a small document becomes one without bound,
// and one with text after its end, which nothing would read.
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

// once refuses a document that has a key twice, of which one would not be read, as where the line --- between objects is
// missing. Within a chart's objects Helm takes that.
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

// add adds the object that has these fields, or those of a list.
func (t text) add(all []object, fields map[string]json.RawMessage, most int) ([]object, error) {
	one := func(fields map[string]json.RawMessage) error {
		if len(all) == most {
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

// itemsOf returns the items of a list, and whether it is one: it has no name, and a kind that ends in List.
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
		case "resourceVersion", "selfLink", "continue", "remainingItemCount": // of an API server's answer
		default:
			return nil, true, errors.New("it is a list, and its metadata is that of an object")
		}
	}
	if json.Unmarshal(fields["items"], &items) != nil || items == nil {
		return nil, true, errors.New("it is a list, and its items are none")
	}
	return items, true, nil
}

// objectOf is the object that has these fields.
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

// fieldsOf returns the fields of a JSON object, none of anything else.
func fieldsOf(text json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	return fields
}

// textOf returns a JSON string, an empty one for anything else.
func textOf(text json.RawMessage) (s string) {
	_ = json.Unmarshal(text, &s)
	return s
}

// check says what an object lacks.
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

// hide makes the log hide what the Secrets among objects hold.
func hide(log *provision.Log, objects []object) {
	for _, o := range objects {
		if !o.isSecret() {
			continue
		}
		var all []string
		for _, value := range fieldsOf(fieldsOf(o.body)["data"]) { // the API server refuses one that is not base64
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
