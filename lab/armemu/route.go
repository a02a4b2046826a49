// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Kind is the kind of a request.
type Kind string

// The kinds of request.
const (
	KindGet    Kind = "get"
	KindList   Kind = "list"
	KindPut    Kind = "put"
	KindPatch  Kind = "patch" // of tags, or of a scale set's or instance's model
	KindDelete Kind = "delete"
	KindAction Kind = "action" // a POST, such as manualupgrade
	KindPoll   Kind = "poll"   // of a long-running operation
	KindOther  Kind = "other"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindGet, KindList, KindPut, KindPatch, KindDelete, KindAction, KindPoll, KindOther}
}

type route struct {
	kind         Kind
	subscription string
	namespace    string
	id           resourceID // of the resource, or of the parent of listed children
	list         *childKind // listed children; nil lists roots of armID.root
	action       *action
	interfaces   bool // reads network interfaces of a scale set or instance
	nic          string
	location     string
	operation    string
	result       bool        // polled by Location rather than Azure-AsyncOperation
	target       routeTarget // target in Resource Manager itself
	problem      *Problem
}

func (r route) resourceID() string {
	switch {
	case r.target == targetGroup:
		return r.groupID()
	case r.target != targetResource:
		return ""
	case r.kind == KindGet || r.kind == KindPut || r.kind == KindPatch || r.kind == KindDelete || r.kind == KindAction:
		return r.id.String()
	}
	return ""
}

// parseRoute splits the escaped form, so an escaped slash in a name cannot address another
// resource.
func parseRoute(method string, u *url.URL) route {
	r := route{kind: KindOther}
	var seg []string
	for s := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		plain, err := url.PathUnescape(s)
		if err != nil || plain == "" || strings.Contains(plain, "/") {
			r.problem = notFound("NotFound", "The request path has an empty or malformed segment.")
			return r
		}
		seg = append(seg, plain)
	}
	if len(seg) < 2 || !strings.EqualFold(seg[0], "subscriptions") {
		r.problem = notFound("NotFound", "The request path does not begin with /subscriptions/{id}.")
		return r
	}
	r.subscription = seg[1]
	r.id.subscription = seg[1]
	rest := seg[2:]
	if r.parseGroupPath(method, rest) {
		return r
	}
	if len(rest) >= 2 && strings.EqualFold(rest[0], "resourceGroups") {
		r.id.group, rest = rest[1], rest[2:]
	}
	if len(rest) >= 3 && strings.EqualFold(rest[0], "providers") {
		r.namespace = knownNamespace(rest[1])
	}
	if r.namespace == "" {
		r.problem = notFound("InvalidResourceNamespace", "The emulator models the resource namespaces "+network+" and "+compute+" only.")
		return r
	}
	r.parseProviderPath(method, rest[2:])
	return r
}

func knownNamespace(name string) string {
	for _, known := range []string{network, compute} {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

func (r *route) parseProviderPath(method string, seg []string) {
	if r.id.group == "" && strings.EqualFold(seg[0], "locations") && len(seg) == 4 {
		r.operation = strings.ToLower(seg[3])
		r.result = strings.EqualFold(seg[2], "operationResults")
		if r.result || strings.EqualFold(seg[2], "operations") {
			r.setKind(method, KindPoll)
			return
		}
	}
	if r.id.group == "" && r.namespace == network && strings.EqualFold(seg[0], "locations") && len(seg) == 3 && strings.EqualFold(seg[2], usagesSegment) {
		r.location = strings.ToLower(seg[1])
		r.setKind(method, KindList)
		return
	}
	r.id.root = rootByCollection(r.namespace, nil, seg[0])
	if r.id.root == nil {
		r.problem = r.unknownType(seg[0])
		return
	}
	if len(seg) == 1 {
		r.setKind(method, KindList)
		return
	}
	if r.id.group == "" {
		r.problem = notFound("NotFound", "A single resource lies below /resourceGroups/{name}.")
		return
	}
	r.id.name = seg[1]
	switch len(seg) {
	case 2:
		r.setKind(method, KindGet, KindPut, KindDelete, KindPatch)
	case 3, 4:
		if r.id.root == scaleSetKind && len(seg) == 3 && strings.EqualFold(seg[2], interfacesSegment) {
			r.interfaces = true
			r.setKind(method, KindList)
			return
		}
		if r.action = actionOn(r.id.root, seg[2]); r.action != nil && len(seg) == 3 {
			r.setKind(method, KindAction)
			return
		}
		if below := rootByCollection(r.namespace, r.id.root, seg[2]); below != nil {
			r.parseNestedPath(method, below, seg[3:])
			return
		}
		child := r.id.root.findChild(seg[2])
		if child == nil || !child.addressable {
			r.problem = r.unknownType(seg[0] + "/" + seg[2])
			return
		}
		if len(seg) == 3 {
			r.list = child
			r.setKind(method, KindList)
			return
		}
		r.id = r.id.withChild(child, seg[3])
		r.setKind(method, KindGet, KindPut, KindDelete)
	case 5, 6:
		if r.parseHealthPath(method, seg) {
			return
		}
		below := rootByCollection(r.namespace, r.id.root, seg[2])
		if below != nil && (len(seg) == 5 && actionOn(below, seg[4]) != nil || strings.EqualFold(seg[4], interfacesSegment)) {
			r.parseNestedPath(method, below, seg[3:])
			return
		}
		fallthrough
	default:
		r.problem = r.unknownType(strings.Join(seg, "/"))
	}
}

// parseHealthPath parses loadBalancers/NAME/loadBalancingRules/RULE/health.
func (r *route) parseHealthPath(method string, seg []string) bool {
	if r.id.root != loadBalancerKind || len(seg) != 5 || !strings.EqualFold(seg[2], lbRules) || !strings.EqualFold(seg[4], ruleHealth.name) {
		return false
	}
	r.id = r.id.withChild(r.id.root.findChild(lbRules), seg[3])
	r.action = ruleHealth
	r.setKind(method, KindAction)
	return true
}

func (r *route) parseNestedPath(method string, kind *rootKind, rest []string) {
	r.id.root, r.id.parent, r.id.name = kind, r.id.name, ""
	if len(rest) == 0 {
		r.setKind(method, KindList)
		return
	}
	r.id.name = rest[0]
	if len(rest) > 1 && strings.EqualFold(rest[1], interfacesSegment) {
		r.interfaces = true
		if len(rest) == 2 {
			r.setKind(method, KindList)
			return
		}
		r.nic = rest[2]
		r.setKind(method, KindGet)
		return
	}
	if len(rest) > 1 {
		r.action = actionOn(kind, rest[1])
		r.setKind(method, KindAction)
		return
	}
	r.setKind(method, KindGet, KindPut, KindDelete)
}

func (r *route) setKind(method string, allowed ...Kind) {
	for _, k := range allowed {
		want := http.MethodGet
		switch k {
		case KindPut:
			want = http.MethodPut
		case KindPatch:
			want = http.MethodPatch
		case KindDelete:
			want = http.MethodDelete
		case KindAction:
			want = http.MethodPost
		}
		if method == want {
			r.kind = k
			return
		}
	}
	r.problem = &Problem{
		Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed", Gateway: true,
		Message: fmt.Sprintf("The emulator does not model the method %q on this path.", method),
	}
}

func (r *route) unknownType(name string) *Problem {
	return notFound("InvalidResourceType", fmt.Sprintf(
		"The resource type %q could not be found in the namespace %q. The emulator models %s.", name, r.namespace, modeledTypes()))
}

func parseID(id string) (resourceID, error) {
	r := parseRoute(http.MethodGet, &url.URL{Path: id})
	if r.problem != nil {
		return resourceID{}, fmt.Errorf("resource id %q: %s", id, r.problem.Message)
	}
	if r.kind != KindGet || r.target != targetResource {
		return resourceID{}, fmt.Errorf("resource id %q names no single resource: give the id of one of %s", id, modeledTypes())
	}
	return r.id, nil
}
