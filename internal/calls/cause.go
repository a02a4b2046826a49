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

type causesKey struct{}

// For returns a context whose requests are made for causes, in place of those it had. Beyond MaxCauses
// they are left out.
func For(ctx context.Context, causes ...Cause) context.Context {
	return context.WithValue(ctx, causesKey{}, slices.Clone(causes[:min(len(causes), MaxCauses)]))
}

// CausesOf returns for whom the requests of a context are made. Nobody changes them.
func CausesOf(ctx context.Context) []Cause {
	causes, _ := ctx.Value(causesKey{}).([]Cause)
	return causes
}
