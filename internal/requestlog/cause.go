// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"context"
	"slices"
)

// MaxCauses limits the causes of a Call: one write may serve hundreds of Services.
const MaxCauses = 20

// Cause is the Kubernetes object that a request is made for.
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

// WithCauses replaces the causes of a context; those beyond MaxCauses are dropped.
func WithCauses(ctx context.Context, causes ...Cause) context.Context {
	ctx = context.WithValue(ctx, namespacesKey{}, collectNamespaces(causes))
	return context.WithValue(ctx, causesKey{}, slices.Clone(causes[:min(len(causes), MaxCauses)]))
}

// Namespaces are the namespaces of causes, sorted and unique.
type Namespaces struct{ OfServices, OfPools []string }

func collectNamespaces(causes []Cause) (namespaces Namespaces) {
	for _, c := range causes {
		switch c.Kind {
		case "Service":
			namespaces.OfServices = append(namespaces.OfServices, c.Namespace)
		case "BackendPool":
			namespaces.OfPools = append(namespaces.OfPools, c.Namespace)
		}
	}
	slices.Sort(namespaces.OfServices)
	slices.Sort(namespaces.OfPools)
	return Namespaces{slices.Compact(namespaces.OfServices), slices.Compact(namespaces.OfPools)}
}

// ContextNamespaces includes the causes beyond MaxCauses.
func ContextNamespaces(ctx context.Context) Namespaces {
	namespaces, _ := ctx.Value(namespacesKey{}).(Namespaces)
	return namespaces
}

// ContextCauses returns the causes of a context. Do not modify them.
func ContextCauses(ctx context.Context) []Cause {
	causes, _ := ctx.Value(causesKey{}).([]Cause)
	return causes
}
