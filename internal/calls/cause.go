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

// Namespaces are those of causes, each once.
type Namespaces struct{ OfServices, OfPools []string }

func namespacesOf(causes []Cause) (of Namespaces) {
	for _, c := range causes {
		switch c.Kind {
		case "Service":
			of.OfServices = append(of.OfServices, c.Namespace)
		case "BackendPool":
			of.OfPools = append(of.OfPools, c.Namespace)
		}
	}
	slices.Sort(of.OfServices)
	slices.Sort(of.OfPools)
	return Namespaces{slices.Compact(of.OfServices), slices.Compact(of.OfPools)}
}

// NamespacesOf returns the namespaces of all Services and BackendPools for which the requests of a context are made,
// those beyond MaxCauses included.
func NamespacesOf(ctx context.Context) Namespaces {
	of, _ := ctx.Value(namespacesKey{}).(Namespaces)
	return of
}

// CausesOf returns for whom the requests of a context are made. Nobody changes them.
func CausesOf(ctx context.Context) []Cause {
	causes, _ := ctx.Value(causesKey{}).([]Cause)
	return causes
}
