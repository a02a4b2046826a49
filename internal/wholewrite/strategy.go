// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"encoding/json"
	"slices"
	"strings"
)

// Strategy is how several due pools of a load balancer are written.
type Strategy string

// AutoStrategy is the default: the fastest that Azure was seen to support.
const (
	AutoStrategy    Strategy = "auto"
	SerialStrategy  Strategy = "serial"    // each after the previous one has completed
	OverlapStrategy Strategy = "pipelined" // each once the previous one was accepted
	BatchStrategy   Strategy = "whole"     // one write of the load balancer
)

// ListStrategies returns all strategies.
func ListStrategies() []Strategy {
	return []Strategy{AutoStrategy, SerialStrategy, OverlapStrategy, BatchStrategy}
}

// IsValid reports whether the strategy is known.
func (s Strategy) IsValid() bool { return slices.Contains(ListStrategies(), s) }

// UnmarshalJSON ignores case.
func (s *Strategy) UnmarshalJSON(text []byte) error {
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	*s = Strategy(word)
	if folded := Strategy(strings.ToLower(word)); folded.IsValid() {
		*s = folded
	}
	return nil
}

// BatchSetting is the setting for batched updates.
func (s Strategy) BatchSetting() Setting {
	switch s {
	case SerialStrategy, OverlapStrategy:
		return Never
	case BatchStrategy:
		return Always
	case AutoStrategy:
	}
	return Auto
}

// OverlapSetting is the setting for overlapping updates.
func (s Strategy) OverlapSetting() Setting {
	switch s {
	case SerialStrategy, BatchStrategy:
		return Never
	case OverlapStrategy:
		return Always
	case AutoStrategy:
	}
	return Auto
}
