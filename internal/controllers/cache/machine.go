// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/membership"
)

// errNoProviderID is for a node with a still unknown machine.
var errNoProviderID = errors.New("it has no spec.providerID, so its machine is not known: the cloud provider has to set it")

// machineOf returns the machine of a node, or why it is unknown.
func machineOf(n *corev1.Node) (nic.Machine, error) {
	if n.Spec.ProviderID == "" {
		return nic.Machine{}, errNoProviderID
	}
	m, err := nic.ParseMachine(n.Spec.ProviderID)
	if err != nil {
		return nic.Machine{}, fmt.Errorf("its spec.providerID %q names no virtual machine of Azure", n.Spec.ProviderID)
	}
	return m, nil
}

// WithMachine returns a node as seen by a pool of network interfaces.
func WithMachine(node membership.Node, n *corev1.Node) membership.Node {
	m, err := machineOf(n)
	if node.MachinePending = n.Spec.ProviderID == ""; err != nil {
		node.NoMachine = err.Error()
		return node
	}
	node.Machine = m.Key()
	return node
}

// machineInputs caches the parsed machines, because parsing is slow and pools have thousands of nodes.
type machineInputs struct {
	mu           sync.Mutex // held briefly
	byProviderID map[string]machineInput
}

type machineInput struct{ key, none string }

const maxMachineInputs = 20_000

func (m *machineInputs) setMachine(node *membership.Node, n *corev1.Node) {
	input := m.getMachine(n)
	node.Machine, node.NoMachine, node.MachinePending = input.key, input.none, n.Spec.ProviderID == ""
}

func (m *machineInputs) getMachine(n *corev1.Node) machineInput {
	m.mu.Lock()
	defer m.mu.Unlock()
	input, known := m.byProviderID[n.Spec.ProviderID]
	if known {
		return input
	}
	node := WithMachine(membership.Node{}, n)
	input = machineInput{node.Machine, node.NoMachine}
	if m.byProviderID == nil || len(m.byProviderID) >= maxMachineInputs {
		m.byProviderID = map[string]machineInput{}
	}
	m.byProviderID[n.Spec.ProviderID] = input
	return input
}
