// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"weir.dev/weir/internal/adminstate"
)

// AdminState says which nodes are to take no new flows.
type AdminState struct {
	// EnableNodeAdminState has nodes that leave set Down in the pools; unset is true.
	EnableNodeAdminState *bool `json:"enableNodeAdminState,omitempty"`
	// NodeAdminStateTaints are further taints that say that a node leaves, as "key" or
	// "key=value".
	NodeAdminStateTaints []string `json:"nodeAdminStateTaints,omitempty"`
}

// SetsAdminState reports whether nodes that leave are set Down.
func (a AdminState) SetsAdminState() bool {
	return a.EnableNodeAdminState == nil || *a.EnableNodeAdminState
}

// Signals returns the taints that say that a node leaves; nil if admin states are left alone.
func (a AdminState) Signals() *adminstate.Signals {
	if !a.SetsAdminState() {
		return nil
	}
	signals := &adminstate.Signals{}
	for _, text := range a.NodeAdminStateTaints {
		if p, err := adminstate.ParsePattern(text); err == nil { // check has seen them
			signals.Further = append(signals.Further, p)
		}
	}
	return signals
}

func (a AdminState) check() error {
	for i, text := range a.NodeAdminStateTaints {
		key := fmt.Sprintf("nodeAdminStateTaints[%d]", i)
		p, err := adminstate.ParsePattern(text)
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		if checkLabel(key, p.Key) != nil || checkLabelValue(key, p.Value) != nil {
			return fmt.Errorf(`key %q is %q: want the key of a taint or "key=value", without an effect`, key, text)
		}
	}
	return nil
}
