// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	"weir.dev/weir/internal/lb"
)

// AdminState configures how nodes are drained.
type AdminState struct {
	// EnableNodeAdminState sets leaving nodes Down; unset means true.
	EnableNodeAdminState *bool `json:"enableNodeAdminState,omitempty"`
	// NodeAdminStateTaints are additional taints of leaving nodes: "key" or "key=value".
	NodeAdminStateTaints []string `json:"nodeAdminStateTaints,omitempty"`
	// NodeAdminStateConditions are types of Node conditions that mark a leaving node while they are True.
	NodeAdminStateConditions []string `json:"nodeAdminStateConditions,omitempty"`
	// NodeAdminStateReporters are trusted sources of eviction events; empty means none, unset those of AKS and
	// node-problem-detector.
	NodeAdminStateReporters []string `json:"nodeAdminStateReporters,omitempty"`
	// NodeAdminStateMinAvailablePercent of a pool's members stay up during announced evictions, at least one;
	// unset means 50, 0 means none.
	NodeAdminStateMinAvailablePercent *int `json:"nodeAdminStateMinAvailablePercent,omitempty"`
}

// SetsAdminState returns EnableNodeAdminState or its default.
func (a AdminState) SetsAdminState() bool {
	return a.EnableNodeAdminState == nil || *a.EnableNodeAdminState
}

// Signals returns how to detect leaving nodes; nil if admin states are not managed.
func (a AdminState) Signals() *lb.DrainSignals {
	if !a.SetsAdminState() {
		return nil
	}
	signals := &lb.DrainSignals{
		ExtraConditions: a.NodeAdminStateConditions, Reporters: a.trustedReporters(), MinAvailablePercent: a.minAvailablePercent(),
	}
	for _, text := range a.NodeAdminStateTaints {
		if p, err := lb.ParseConditionPattern(text); err == nil { // already validated
			signals.ExtraPatterns = append(signals.ExtraPatterns, p)
		}
	}
	return signals
}

func (a AdminState) trustedReporters() []string {
	if a.NodeAdminStateReporters == nil {
		return lb.DefaultReporters()
	}
	return a.NodeAdminStateReporters
}

func (a AdminState) minAvailablePercent() int {
	if a.NodeAdminStateMinAvailablePercent == nil {
		return lb.DefaultMinAvailablePercent
	}
	return *a.NodeAdminStateMinAvailablePercent
}

func (a AdminState) validateAdminState() error {
	if percent := a.minAvailablePercent(); percent < 0 || percent > 100 {
		return fmt.Errorf(`key "nodeAdminStateMinAvailablePercent" is %d: want 0 to 100`, percent)
	}
	if slices.Contains(a.NodeAdminStateReporters, "") {
		return errors.New(`key "nodeAdminStateReporters" has an empty name: want what kubectl get events shows as the source of the agent's events`)
	}
	for i, text := range a.NodeAdminStateTaints {
		key := fmt.Sprintf("nodeAdminStateTaints[%d]", i)
		p, err := lb.ParseConditionPattern(text)
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		if checkLabel(key, p.Key) != nil || checkLabelValue(key, p.Value) != nil {
			return fmt.Errorf(`key %q is %q: want the key of a taint or "key=value", without an effect`, key, text)
		}
	}
	for i, text := range a.NodeAdminStateConditions {
		key := fmt.Sprintf("nodeAdminStateConditions[%d]", i)
		name, err := lb.ParseConditionType(text)
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		if checkLabel(key, name) != nil {
			return fmt.Errorf(`key %q is %q: want the type of a Node condition, such as DrainInProgress`, key, text)
		}
	}
	return nil
}
