// SPDX-License-Identifier: Apache-2.0

// Package schema checks request bodies against Azure's OpenAPI specification.
//
// properties.tsv lists every property of the resources that Weir writes, with flags, allowed values
// and the first api-version; its header names the source. It does not descend into embedded
// resources, so a property without children accepts any value.
package schema

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed properties.tsv
var table string

// Fault is the kind of a violation.
type Fault string

// The faults.
const (
	Unknown  Fault = "unknown"   // the resource has no such property
	ReadOnly Fault = "read-only" // only Azure sets it
	Value    Fault = "value"     // not one of the values, or not the JSON type
	Required Fault = "required"  // missing
	Newer    Fault = "newer"     // introduced by a later api-version
)

// Violation is one property of a request body that violates the schema.
type Violation struct {
	// Type is the resource type, Property the path in the body with [] for list items.
	Type, Property string
	Fault          Fault
	// Detail is the offending value, or the first api-version of a newer property.
	Detail string
}

// String returns the violation without its detail, the key of allowlists.
func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Type, v.Property, v.Fault)
}

type schemaProperty struct {
	name               string
	path               string   // in the body, with [] for lists above it
	names              []string // of the children, sorted
	readOnly, required bool
	values             []string
	since              string
	latest             string // maximum of since here and below
	list               bool
	children           map[string]*schemaProperty
}

var schemas = sync.OnceValue(func() map[string]*schemaProperty {
	types := map[string]*schemaProperty{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cells) != 5 {
			panic(fmt.Sprintf("properties.tsv: want 5 columns: %q", line))
		}
		p := rootProperty(types, cells[0])
		p.latest = max(p.latest, cells[4])
		for step := range strings.SplitSeq(cells[1], ".") {
			name, isList := strings.CutSuffix(step, "[]")
			p = p.childProperty(name)
			p.list = p.list || isList
			p.latest = max(p.latest, cells[4])
		}
		p.readOnly, p.required = strings.Contains(cells[2], "read-only"), strings.Contains(cells[2], "required")
		p.since = cells[4]
		for value := range strings.SplitSeq(cells[3], "|") {
			if value != "" && value != "…" {
				p.values = append(p.values, value)
			}
		}
	}
	return types
})

func rootProperty(types map[string]*schemaProperty, name string) *schemaProperty {
	key := strings.ToLower(name)
	if types[key] == nil {
		types[key] = &schemaProperty{name: name, children: map[string]*schemaProperty{}}
	}
	return types[key]
}

func (p *schemaProperty) childProperty(name string) *schemaProperty {
	if p.children == nil {
		p.children = map[string]*schemaProperty{}
	}
	if p.children[name] == nil {
		above := p.path
		if p.list {
			above += "[]"
		}
		p.children[name] = &schemaProperty{name: name, path: strings.TrimPrefix(above+"."+name, ".")}
		p.names = slices.Sorted(maps.Keys(p.children))
	}
	return p.children[name]
}

// HasType reports whether the table has the resource type.
func HasType(resourceType string) bool { return schemas()[strings.ToLower(resourceType)] != nil }

// acceptedReadOnly lists read-only properties that Azure accepts when a client sends back what it read.
// Evidence: repairing a load balancer by a PUT of its GET is documented, and a recorded PUT of a
// private endpoint connection has its id. DuplicateIpConfigurationReferenceOnBackendAddressPool
// shows that Azure evaluates the network interface of an address, the only thing that identifies
// the address.
var acceptedReadOnly = []string{
	"id", "properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
	"properties.backendAddressPools[].properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
}

// AcceptedReadOnly returns the read-only properties that are not violations.
func AcceptedReadOnly() []string { return slices.Clone(acceptedReadOnly) }

// missingInPatch lists properties in the PUT model of a scale set but not in its PATCH model.
var missingInPatch = []string{"publicIPAddressConfiguration.sku", "publicIPAddressConfiguration.properties.ipTags", "publicIPAddressConfiguration.properties.publicIPAddressVersion"}

// Check returns the violations of a PUT or PATCH body, sorted by path. Unknown resource types have
// none.
func Check(resourceType, version string, patch bool, body map[string]any) []Violation {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil {
		return nil
	}
	if patch && !strings.HasPrefix(p.name, "Microsoft.Compute/") {
		p = &schemaProperty{name: p.name, names: []string{"tags"}, children: map[string]*schemaProperty{"tags": p.children["tags"]}}
	}
	c := bodyChecker{resourceType: p.name, version: version, patch: patch}
	c.checkObject("", p, body)
	return c.found
}

// FindNewer returns the first property introduced by a later api-version.
func FindNewer(resourceType, version string, body map[string]any) (Violation, bool) {
	for _, p := range newerProperties(resourceType, version) {
		if hasPath(body, p.steps) {
			return Violation{Type: resourceType, Property: p.path, Fault: Newer, Detail: p.since}, true
		}
	}
	return Violation{}, false
}

// RemoveNewer returns a copy of the body without properties introduced by a later api-version.
func RemoveNewer(resourceType, version string, body any) any {
	for _, p := range newerProperties(resourceType, version) {
		body = removePath(body, p.steps)
	}
	return body
}

// RetainNewer returns after with the newer properties of before; list items are matched by name.
func RetainNewer(resourceType, version string, before, after any) any {
	for _, p := range newerProperties(resourceType, version) {
		after = retainPath(before, after, p.steps)
	}
	return after
}

type versionedProperty struct {
	path, since string
	steps       []string
}

// newerProperties returns the topmost properties introduced by a later api-version.
func newerProperties(resourceType, version string) []versionedProperty {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil || p.latest <= version {
		return nil
	}
	key := [2]string{p.name, version}
	if known, ok := newerCache.Load(key); ok {
		return known.([]versionedProperty) //nolint:forcetypeassert // nothing else is stored
	}
	properties := p.newerProperties("", version, nil)
	newerCache.Store(key, properties)
	return properties
}

// newerCache caches newer, which every response needs.
var newerCache sync.Map

func (p *schemaProperty) newerProperties(path, version string, properties []versionedProperty) []versionedProperty {
	if p.latest <= version {
		return properties
	}
	for _, name := range p.names {
		child := p.children[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if child.since > version {
			properties = append(properties, versionedProperty{path: at, since: child.since, steps: strings.Split(at, ".")})
			continue
		}
		if child.list {
			at += "[]"
		}
		properties = child.newerProperties(at, version, properties)
	}
	return properties
}

func hasPath(body any, steps []string) bool {
	name, isList := strings.CutSuffix(steps[0], "[]")
	object, _ := body.(map[string]any)
	value := object[name]
	if value == nil || len(steps) == 1 {
		return value != nil
	}
	if !isList {
		return hasPath(value, steps[1:])
	}
	list, _ := value.([]any)
	return slices.ContainsFunc(list, func(item any) bool { return hasPath(item, steps[1:]) })
}

func removePath(body any, steps []string) any {
	if !hasPath(body, steps) {
		return body
	}
	object, _ := body.(map[string]any)
	next := maps.Clone(object)
	name, isList := strings.CutSuffix(steps[0], "[]")
	switch list, _ := next[name].([]any); {
	case len(steps) == 1:
		delete(next, name)
	case isList:
		list = slices.Clone(list)
		for i, item := range list {
			list[i] = removePath(item, steps[1:])
		}
		next[name] = list
	default:
		next[name] = removePath(next[name], steps[1:])
	}
	return next
}

func retainPath(before, after any, steps []string) any {
	if !hasPath(before, steps) {
		return after
	}
	previous, _ := before.(map[string]any)
	got, ok := after.(map[string]any)
	if !ok {
		return after
	}
	next := maps.Clone(got)
	name, isList := strings.CutSuffix(steps[0], "[]")
	switch {
	case len(steps) == 1:
		next[name] = previous[name]
	case isList:
		old, _ := previous[name].([]any)
		list, _ := next[name].([]any)
		list = slices.Clone(list)
		for i, item := range list {
			if j := slices.IndexFunc(old, func(o any) bool { return equalNames(o, item) }); j >= 0 {
				list[i] = retainPath(old[j], item, steps[1:])
			}
		}
		next[name] = list
	case next[name] != nil:
		next[name] = retainPath(previous[name], next[name], steps[1:])
	}
	return next
}

func equalNames(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	name, _ := x["name"].(string)
	other, _ := y["name"].(string)
	return name != "" && strings.EqualFold(name, other)
}

// Writable returns a copy of the body without read-only properties.
func Writable(resourceType string, body map[string]any) map[string]any {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil {
		return body
	}
	return p.writableBody("", body)
}

func (p *schemaProperty) writableBody(path string, body map[string]any) map[string]any {
	next := map[string]any{}
	for name, value := range body {
		at := strings.TrimPrefix(path+"."+name, ".")
		child := p.children[name]
		if child == nil {
			next[name] = value
			continue
		}
		if child.readOnly && !slices.Contains(acceptedReadOnly, at) {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			next[name] = child.writableBody(at, value)
		case []any:
			list := slices.Clone(value)
			for i, item := range list {
				if object, ok := item.(map[string]any); ok {
					list[i] = child.writableBody(at+"[]", object)
				}
			}
			next[name] = list
		default:
			next[name] = value
		}
	}
	return next
}

// Example returns a body with every writable property. Lists have one item. leaf returns the value
// of a property without known values.
func Example(resourceType string, leaf func(path string) any) map[string]any {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil {
		return nil
	}
	return p.exampleBody("", false, leaf)
}

// ExampleResponse is Example with read-only properties.
func ExampleResponse(resourceType string, leaf func(path string) any) map[string]any {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil {
		return nil
	}
	return p.exampleBody("", true, leaf)
}

func (p *schemaProperty) exampleBody(path string, readOnly bool, leaf func(string) any) map[string]any {
	body := map[string]any{}
	for name, child := range p.children {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case child.readOnly && !readOnly:
		case child.list:
			body[name] = []any{child.exampleBody(at+"[]", readOnly, leaf)}
		case child.children != nil:
			body[name] = child.exampleBody(at, readOnly, leaf)
		case len(child.values) > 0:
			body[name] = child.values[0]
		default:
			body[name] = leaf(at)
		}
	}
	return body
}

type bodyChecker struct {
	resourceType, version string
	patch                 bool
	found                 []Violation
}

func (c *bodyChecker) addViolation(path string, fault Fault, detail string) {
	v := Violation{Type: c.resourceType, Property: path, Fault: fault, Detail: detail}
	if !slices.Contains(c.found, v) {
		c.found = append(c.found, v)
	}
}

func (c *bodyChecker) checkObject(path string, p *schemaProperty, body map[string]any) {
	var few [16]string // not on the heap
	names := slices.AppendSeq(few[:0], maps.Keys(body))
	slices.Sort(names)
	for _, name := range names {
		child := p.children[name]
		if child == nil {
			c.addViolation(strings.TrimPrefix(path+"."+name, "."), Unknown, "")
			continue
		}
		at := child.path
		switch {
		case c.isMissingInPatch(at):
			c.addViolation(at, Unknown, "in a PATCH")
		case body[name] == nil: // equals absent
		case child.readOnly && slices.Contains(acceptedReadOnly, at):
		case child.readOnly:
			c.addViolation(at, ReadOnly, fmt.Sprint(body[name]))
		case child.since > c.version:
			c.addViolation(at, Newer, child.since)
		default:
			c.checkValue(at, child, body[name])
		}
	}
	for _, name := range p.names {
		child := p.children[name]
		// The resource's own name is in the URL.
		if child.required && !child.readOnly && !c.patch && body[name] == nil && (path != "" || name != "name") {
			c.addViolation(child.path, Required, "")
		}
	}
}

func (c *bodyChecker) isMissingInPatch(at string) bool {
	return c.patch && slices.ContainsFunc(missingInPatch, func(m string) bool { return strings.HasSuffix(at, m) })
}

func (c *bodyChecker) checkValue(at string, p *schemaProperty, value any) {
	switch {
	case len(p.values) > 0:
		if text, ok := value.(string); !ok || !slices.Contains(p.values, text) {
			c.addViolation(at, Value, fmt.Sprint(value))
		}
	case p.list:
		items, ok := value.([]any)
		if !ok {
			c.addViolation(at, Value, "no list")
		}
		for _, item := range items {
			c.checkNested(at+"[]", p, item)
		}
	case p.children != nil:
		c.checkNested(at, p, value)
	default:
		object, _ := value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if c.isMissingInPatch(at + "." + name) {
				c.addViolation(at+"."+name, Unknown, "in a PATCH")
			}
		}
	}
}

func (c *bodyChecker) checkNested(at string, p *schemaProperty, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.addViolation(at, Value, "no object")
		return
	}
	c.checkObject(at, p, object)
}
