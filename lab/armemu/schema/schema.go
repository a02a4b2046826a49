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

type property struct {
	name               string
	readOnly, required bool
	values             []string
	since              string
	latest             string // maximum of since here and below
	list               bool
	children           map[string]*property
}

var schemas = sync.OnceValue(func() map[string]*property {
	types := map[string]*property{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cells) != 5 {
			panic(fmt.Sprintf("properties.tsv: want 5 columns: %q", line))
		}
		p := root(types, cells[0])
		p.latest = max(p.latest, cells[4])
		for step := range strings.SplitSeq(cells[1], ".") {
			name, isList := strings.CutSuffix(step, "[]")
			p = p.child(name)
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

func root(types map[string]*property, name string) *property {
	key := strings.ToLower(name)
	if types[key] == nil {
		types[key] = &property{name: name, children: map[string]*property{}}
	}
	return types[key]
}

func (p *property) child(name string) *property {
	if p.children == nil {
		p.children = map[string]*property{}
	}
	if p.children[name] == nil {
		p.children[name] = &property{name: name}
	}
	return p.children[name]
}

// Knows reports whether the table has the resource type.
func Knows(resourceType string) bool { return schemas()[strings.ToLower(resourceType)] != nil }

// accepted lists read-only properties that Azure accepts when a client sends back what it read.
// Evidence: repairing a load balancer by a PUT of its GET is documented, and a recorded PUT of a
// private endpoint connection has its id. DuplicateIpConfigurationReferenceOnBackendAddressPool
// shows that Azure evaluates the network interface of an address, the only thing that identifies
// the address.
var accepted = []string{
	"id", "properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
	"properties.backendAddressPools[].properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
}

// Accepted returns the read-only properties that are not violations.
func Accepted() []string { return slices.Clone(accepted) }

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
		p = &property{name: p.name, children: map[string]*property{"tags": p.children["tags"]}}
	}
	c := check{resourceType: p.name, version: version, patch: patch}
	c.object("", p, body)
	return c.found
}

// NewerThan returns the first property introduced by a later api-version.
func NewerThan(resourceType, version string, body map[string]any) (Violation, bool) {
	for _, p := range newer(resourceType, version) {
		if has(body, p.steps) {
			return Violation{Type: resourceType, Property: p.path, Fault: Newer, Detail: p.since}, true
		}
	}
	return Violation{}, false
}

// WithoutNewer returns a copy of the body without properties introduced by a later api-version.
func WithoutNewer(resourceType, version string, body any) any {
	for _, p := range newer(resourceType, version) {
		body = remove(body, p.steps)
	}
	return body
}

// KeepNewer returns after with the newer properties of before; list items are matched by name.
func KeepNewer(resourceType, version string, before, after any) any {
	for _, p := range newer(resourceType, version) {
		after = keep(before, after, p.steps)
	}
	return after
}

type newerProperty struct {
	path, since string
	steps       []string
}

// newer returns the topmost properties introduced by a later api-version.
func newer(resourceType, version string) []newerProperty {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil || p.latest <= version {
		return nil
	}
	key := [2]string{p.name, version}
	if known, ok := newerThan.Load(key); ok {
		return known.([]newerProperty) //nolint:forcetypeassert // nothing else is stored
	}
	all := p.newer("", version, nil)
	newerThan.Store(key, all)
	return all
}

// newerThan caches newer, which every response needs.
var newerThan sync.Map

func (p *property) newer(path, version string, all []newerProperty) []newerProperty {
	if p.latest <= version {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(p.children)) {
		child := p.children[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if child.since > version {
			all = append(all, newerProperty{path: at, since: child.since, steps: strings.Split(at, ".")})
			continue
		}
		if child.list {
			at += "[]"
		}
		all = child.newer(at, version, all)
	}
	return all
}

func has(body any, steps []string) bool {
	name, isList := strings.CutSuffix(steps[0], "[]")
	object, _ := body.(map[string]any)
	value := object[name]
	if value == nil || len(steps) == 1 {
		return value != nil
	}
	if !isList {
		return has(value, steps[1:])
	}
	list, _ := value.([]any)
	return slices.ContainsFunc(list, func(item any) bool { return has(item, steps[1:]) })
}

func remove(body any, steps []string) any {
	if !has(body, steps) {
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
			list[i] = remove(item, steps[1:])
		}
		next[name] = list
	default:
		next[name] = remove(next[name], steps[1:])
	}
	return next
}

func keep(before, after any, steps []string) any {
	if !has(before, steps) {
		return after
	}
	was, _ := before.(map[string]any)
	is, ok := after.(map[string]any)
	if !ok {
		return after
	}
	next := maps.Clone(is)
	name, isList := strings.CutSuffix(steps[0], "[]")
	switch {
	case len(steps) == 1:
		next[name] = was[name]
	case isList:
		old, _ := was[name].([]any)
		list, _ := next[name].([]any)
		list = slices.Clone(list)
		for i, item := range list {
			if j := slices.IndexFunc(old, func(o any) bool { return sameItem(o, item) }); j >= 0 {
				list[i] = keep(old[j], item, steps[1:])
			}
		}
		next[name] = list
	case next[name] != nil:
		next[name] = keep(was[name], next[name], steps[1:])
	}
	return next
}

func sameItem(a, b any) bool {
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
	return p.writable("", body)
}

func (p *property) writable(path string, body map[string]any) map[string]any {
	next := map[string]any{}
	for name, value := range body {
		at := strings.TrimPrefix(path+"."+name, ".")
		child := p.children[name]
		if child == nil {
			next[name] = value
			continue
		}
		if child.readOnly && !slices.Contains(accepted, at) {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			next[name] = child.writable(at, value)
		case []any:
			list := slices.Clone(value)
			for i, item := range list {
				if object, ok := item.(map[string]any); ok {
					list[i] = child.writable(at+"[]", object)
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
	return p.example("", false, leaf)
}

// Shown is Example with read-only properties.
func Shown(resourceType string, leaf func(path string) any) map[string]any {
	p := schemas()[strings.ToLower(resourceType)]
	if p == nil {
		return nil
	}
	return p.example("", true, leaf)
}

func (p *property) example(path string, readOnly bool, leaf func(string) any) map[string]any {
	body := map[string]any{}
	for name, child := range p.children {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case child.readOnly && !readOnly:
		case child.list:
			body[name] = []any{child.example(at+"[]", readOnly, leaf)}
		case child.children != nil:
			body[name] = child.example(at, readOnly, leaf)
		case len(child.values) > 0:
			body[name] = child.values[0]
		default:
			body[name] = leaf(at)
		}
	}
	return body
}

type check struct {
	resourceType, version string
	patch                 bool
	found                 []Violation
}

func (c *check) add(path string, fault Fault, detail string) {
	v := Violation{Type: c.resourceType, Property: path, Fault: fault, Detail: detail}
	if !slices.Contains(c.found, v) {
		c.found = append(c.found, v)
	}
}

func (c *check) object(path string, p *property, body map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(body)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		child := p.children[name]
		switch {
		case child == nil:
			c.add(at, Unknown, "")
		case c.isMissingInPatch(at):
			c.add(at, Unknown, "in a PATCH")
		case body[name] == nil: // equals absent
		case child.readOnly && slices.Contains(accepted, at):
		case child.readOnly:
			c.add(at, ReadOnly, fmt.Sprint(body[name]))
		case child.since > c.version:
			c.add(at, Newer, child.since)
		default:
			c.value(at, child, body[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.children)) {
		child := p.children[name]
		// The resource's own name is in the URL.
		if child.required && !child.readOnly && !c.patch && body[name] == nil && (path != "" || name != "name") {
			c.add(strings.TrimPrefix(path+"."+name, "."), Required, "")
		}
	}
}

func (c *check) isMissingInPatch(at string) bool {
	return c.patch && slices.ContainsFunc(missingInPatch, func(m string) bool { return strings.HasSuffix(at, m) })
}

func (c *check) value(at string, p *property, value any) {
	switch {
	case len(p.values) > 0:
		if text, ok := value.(string); !ok || !slices.Contains(p.values, text) {
			c.add(at, Value, fmt.Sprint(value))
		}
	case p.list:
		items, ok := value.([]any)
		if !ok {
			c.add(at, Value, "no list")
		}
		for _, item := range items {
			c.nested(at+"[]", p, item)
		}
	case p.children != nil:
		c.nested(at, p, value)
	default:
		object, _ := value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if c.isMissingInPatch(at + "." + name) {
				c.add(at+"."+name, Unknown, "in a PATCH")
			}
		}
	}
}

func (c *check) nested(at string, p *property, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.add(at, Value, "no object")
		return
	}
	c.object(at, p, object)
}
