// SPDX-License-Identifier: Apache-2.0

package change

// Action is the operation on a part of a load balancer.
type Action string

// Actions.
const (
	Add    Action = "add"
	Modify Action = "change"
	Remove Action = "remove"
)

// Kind is a kind of part.
type Kind string

// Kinds, in dependency order.
const (
	Pool     Kind = "pool"
	Probe    Kind = "probe"
	Frontend Kind = "frontend"
	Rule     Kind = "rule"
)

// Change is one difference. Was and Is are the part before and after, of the type in package lb; nil if absent.
type Change struct {
	Action  Action
	Kind    Kind
	Name    string
	Was, Is any
}
