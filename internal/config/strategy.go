// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"slices"
	"strings"
)

// WriteStrategy is whether writes of a load balancer's pools overlap.
type WriteStrategy string

// AutoStrategy is the default: as many as Azure accepts.
const (
	AutoStrategy   WriteStrategy = "auto"
	SerialStrategy WriteStrategy = "serial" // each after the previous one has completed
)

// IsValid reports whether the strategy is known.
func (s WriteStrategy) IsValid() bool {
	return slices.Contains([]WriteStrategy{AutoStrategy, SerialStrategy}, s)
}

// UnmarshalJSON ignores case.
func (s *WriteStrategy) UnmarshalJSON(text []byte) error {
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	*s = WriteStrategy(word)
	if folded := WriteStrategy(strings.ToLower(word)); folded.IsValid() {
		*s = folded
	}
	return nil
}
