// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A Gateway has at most 32 copies, and those of its namespace 64. Other namespaces do not count.
func TestBoundsOfCopies(t *testing.T) {
	t.Parallel()
	name := func(namespace, gateway string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: gateway}
	}
	var p nodePorts
	p.setCopies(name("shop", "edge"), maxCopiesOfGateway-1)
	if p.isFull(name("shop", "edge")) {
		t.Error("full too early")
	}
	p.setCopies(name("shop", "edge"), maxCopiesOfGateway)
	if !p.isFull(name("shop", "edge")) || p.isFull(name("shop", "other")) {
		t.Error("the bound of a Gateway")
	}
	for i := range maxCopiesOfNamespace - maxCopiesOfGateway {
		p.setCopies(name("shop", fmt.Sprint(i)), 1)
	}
	if !p.isFull(name("shop", "other")) || p.isFull(name("other", "other")) {
		t.Error("the bound of a namespace")
	}
	for i := range maxCopiesOfNamespace {
		p.setCopies(name("shop", fmt.Sprint(i)), 0)
	}
	p.setCopies(name("shop", "edge"), 0)
	if len(p.copies) > 0 {
		t.Errorf("left are %v", p.copies)
	}
}
