// SPDX-License-Identifier: Apache-2.0

package provisioning

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

	"weir.dev/weir/internal/provisioning/policy"
)

// Tenants write the sources, and all steps share the memory.
const (
	// maxSourceBytes is in bytes, the size limit of a ConfigMap.
	maxSourceBytes = 1 << 20
	// maxObjects is per step, maxProvisionObjects for all steps, which stay in memory during an
	// attempt.
	maxObjects, maxProvisionObjects = 1000, 4000
	// maxValues is per text.
	maxValues = 200_000
	// maxDecodeMemory bounds the estimated memory for one document, in bytes: separatorCost per
	// character that may begin a value, byteCost per byte, and escapeCost per character JSON
	// escapes.
	maxDecodeMemory                     = 64 << 20
	separatorCost, byteCost, escapeCost = 448, 4, 16
	separatorTime, kilobyteTime         = 5 * time.Microsecond, 50 * time.Microsecond
)

type text struct {
	data   []byte
	name   string
	secret bool
	// fromChart marks the output of a chart, in which Helm accepts duplicate keys.
	fromChart bool
}

func decodeTexts(ctx context.Context, texts []text) ([]object, error) {
	var items []object
	for _, t := range texts {
		objects, err := t.decodeObjects(ctx, maxObjects-len(items))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, newInvalidError("%s: %w", t.name, err)
		}
		items = append(items, objects...)
	}
	return items, nil
}

// countSeparators counts the characters that may delimit a value, at least one per value, and those JSON
// escapes.
func countSeparators(document []byte) (values, escaped int) {
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

func decodeTimeFor(texts []text) time.Duration {
	var durations time.Duration
	for _, t := range texts {
		values, _ := countSeparators(t.data)
		durations += time.Duration(values)*separatorTime + time.Duration(len(t.data)>>10)*kilobyteTime
	}
	return durations
}

func checkDecodeMemory(document []byte) error {
	values, escaped := countSeparators(document)
	if takes := values*separatorCost + len(document)*byteCost + escaped*escapeCost; takes > maxDecodeMemory {
		return unsupportedError(fmt.Sprintf("decoding it may take %d MiB of memory, and at most %d MiB are available: it has %d KiB with %d separators of values; split it into several objects",
			takes>>20, maxDecodeMemory>>20, len(document)>>10, values))
	}
	return nil
}

// byteOrderMark is the UTF-8 byte order mark.
const byteOrderMark = "\ufeff"

// decodeObjects reads the objects of a text. Everything but comments must belong to an object. Errors do
// not quote a Secret.
func (t text) decodeObjects(ctx context.Context, limit int) ([]object, error) {
	var objects []object
	documents, values := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(t.data, []byte(byteOrderMark))))), maxValues
	for n := 1; ctx.Err() == nil; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		var fields map[string]json.RawMessage
		if err == nil {
			fields, err = t.decodeDocument(document, &values)
		}
		if _, known := errors.AsType[unsupportedError](err); err != nil && t.secret && !known {
			return nil, fmt.Errorf("object %d: no YAML that can be read", n)
		}
		if err == nil && fields != nil {
			objects, err = t.appendObjects(objects, fields, limit)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
	}
	return nil, ctx.Err()
}

// decodeDocument returns a document as JSON, or nil if it has only comments. remaining is the number
// of values still allowed.
func (t text) decodeDocument(document []byte, remaining *int) (fields map[string]json.RawMessage, err error) {
	if err = checkDecodeMemory(document); err != nil {
		return nil, err
	}
	root, err := parseYAML(document, remaining)
	if err != nil || root == nil {
		return nil, err
	}
	if root.Kind != yamlnode.MappingNode || len(root.Content) == 0 {
		return nil, unsupportedError("it is no object: want apiVersion, kind and metadata, and for several objects a line --- between them, or kind List with items")
	}
	if err := checkDuplicateKeys(root, !t.fromChart); err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSON(document)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// unsupportedError describes an unsupported document without quoting it.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// parseYAML returns the root node of a document, or nil without a value. It rejects aliases, which can
// expand without bound, and text after the end, which would be ignored.
func parseYAML(document []byte, remaining *int) (*yamlnode.Node, error) {
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
			return nil, unsupportedError("anchors and aliases (&name, *name) are not read: write out what they stand for")
		}
		if node.Tag == "!!merge" {
			return nil, unsupportedError("merges (<<) are not read: write out what they stand for")
		}
		if *remaining--; *remaining < 0 {
			return nil, unsupportedError(fmt.Sprintf("with it there are more than %d values", maxValues))
		}
	}
	if err := reads.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, unsupportedError("text follows its end: put a line --- between objects, also between those in JSON")
	}
	if node := root.Content[0]; node.Kind != yamlnode.ScalarNode || node.Value != "" || node.Style != 0 {
		return node, nil
	}
	return nil, nil
}

// checkDuplicateKeys rejects duplicate keys, a sign of a missing --- line. Unless below is set it checks the top
// level only, because Helm accepts the others.
func checkDuplicateKeys(root *yamlnode.Node, below bool) error {
	for open := []*yamlnode.Node{root}; len(open) > 0; {
		node := open[len(open)-1]
		open = open[:len(open)-1]
		if below {
			open = append(open, node.Content...)
		}
		if node.Kind != yamlnode.MappingNode {
			continue
		}
		seen := make(map[string]bool, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yamlnode.ScalarNode {
				return unsupportedError(fmt.Sprintf("line %d: a key is no text", key.Line))
			}
			if seen[key.Value] {
				return unsupportedError(fmt.Sprintf("line %d: a key is there twice: write it once, or put a line --- between two objects", key.Line))
			}
			seen[key.Value] = true
		}
	}
	return nil
}

func (t text) appendObjects(objects []object, fields map[string]json.RawMessage, limit int) ([]object, error) {
	appendObject := func(fields map[string]json.RawMessage) error {
		if len(objects) == limit {
			return fmt.Errorf("it is one too many: a step has at most %d objects", maxObjects)
		}
		next, err := newObject(fields)
		if err != nil {
			return err
		}
		next.secret = t.secret || next.isSecret()
		objects = append(objects, next)
		return next.checkIdentity()
	}
	items, isList, err := listItems(fields)
	if err != nil {
		return objects, err
	}
	if !isList {
		return objects, appendObject(fields)
	}
	for _, item := range items {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || fields == nil {
			return objects, errors.New("its items are no objects")
		}
		if err := appendObject(fields); err != nil {
			return objects, err
		}
	}
	return objects, nil
}

// listItems returns the items of a list: a kind ending in List, without a name.
func listItems(fields map[string]json.RawMessage) (items []json.RawMessage, isList bool, err error) {
	kind, metadata := decodeString(fields["kind"]), decodeFields(fields["metadata"])
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

func newObject(fields map[string]json.RawMessage) (object, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return object{}, err
	}
	metadata := decodeFields(fields["metadata"])
	o := object{
		gvk:       schema.FromAPIVersionAndKind(decodeString(fields["apiVersion"]), decodeString(fields["kind"])),
		namespace: decodeString(metadata["namespace"]), name: decodeString(metadata["name"]), body: body,
	}
	return o, nil
}

func decodeFields(text json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	return fields
}

func decodeString(text json.RawMessage) (s string) {
	_ = json.Unmarshal(text, &s)
	return s
}

func (o object) checkIdentity() error {
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

func hideSecrets(log *policy.Log, objects []object) {
	for _, o := range objects {
		if !o.isSecret() {
			continue
		}
		var secrets []string
		for _, value := range decodeFields(decodeFields(o.body)["data"]) { // the API server rejects invalid base64
			var data []byte
			if json.Unmarshal(value, &data) == nil {
				secrets = append(secrets, string(data))
			}
		}
		for _, value := range decodeFields(decodeFields(o.body)["stringData"]) {
			secrets = append(secrets, decodeString(value))
		}
		log.HideSecrets(secrets...)
	}
}
