// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"slices"
)

// MaxCauses is how many causes a Call names: one write may be for hundreds of Services.
const MaxCauses = 20

// Cause is a Kubernetes object for whose sake Azure is asked.
type Cause struct {
	// Kind is BackendPool, Service or Node.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

type (
	causesKey     struct{}
	namespacesKey struct{}
)

// For returns a context whose requests are made for causes, in place of those it had. Beyond MaxCauses
// they are left out.
func For(ctx context.Context, causes ...Cause) context.Context {
	ctx = context.WithValue(ctx, namespacesKey{}, namespacesOf(causes))
	return context.WithValue(ctx, causesKey{}, slices.Clone(causes[:min(len(causes), MaxCauses)]))
}

// namespacesOf are the namespaces of the Services among causes, each once.
func namespacesOf(causes []Cause) []string {
	var all []string
	for _, c := range causes {
		if c.Kind == "Service" {
			all = append(all, c.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// NamespacesOf returns the namespaces of all Services for which the requests of a context are made, those beyond
// MaxCauses included.
func NamespacesOf(ctx context.Context) []string {
	all, _ := ctx.Value(namespacesKey{}).([]string)
	return all
}

// CausesOf returns for whom the requests of a context are made. Nobody changes them.
func CausesOf(ctx context.Context) []Cause {
	causes, _ := ctx.Value(causesKey{}).([]Cause)
	return causes
}
