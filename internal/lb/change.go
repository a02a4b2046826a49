// SPDX-License-Identifier: Apache-2.0

package lb

// Action is the operation on a part of a load balancer.
type Action string

// Actions.
const (
	ActionAdd    Action = "add"
	ActionModify Action = "change"
	ActionRemove Action = "remove"
)

// Kind is a kind of part.
type Kind string

// Kinds, in dependency order.
const (
	KindPool     Kind = "pool"
	KindProbe    Kind = "probe"
	KindFrontend Kind = "frontend"
	KindRule     Kind = "rule"
)

// Change is one difference. Was and Is are the part before and after, of the type in package lb; nil if absent.
type Change struct {
	Action  Action
	Kind    Kind
	Name    string
	Was, Is any
}
