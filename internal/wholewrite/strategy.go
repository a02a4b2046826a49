// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"encoding/json"
	"slices"
	"strings"
)

// Strategy is how several due pools of a load balancer are written.
type Strategy string

// ByVerdict is the default: the fastest that Azure was seen to support.
const (
	ByVerdict Strategy = "auto"
	Serial    Strategy = "serial"    // each after the previous one has completed
	Pipelined Strategy = "pipelined" // each once the previous one was accepted
	Whole     Strategy = "whole"     // one write of the load balancer
)

// Strategies returns all strategies.
func Strategies() []Strategy { return []Strategy{ByVerdict, Serial, Pipelined, Whole} }

// Valid reports whether the strategy is known.
func (s Strategy) Valid() bool { return slices.Contains(Strategies(), s) }

// UnmarshalJSON ignores case.
func (s *Strategy) UnmarshalJSON(text []byte) error {
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	*s = Strategy(word)
	if folded := Strategy(strings.ToLower(word)); folded.Valid() {
		*s = folded
	}
	return nil
}

// OfWhole is the setting for batched updates.
func (s Strategy) OfWhole() Setting {
	switch s {
	case Serial, Pipelined:
		return Never
	case Whole:
		return Always
	case ByVerdict:
	}
	return Auto
}

// OfOverlapping is the setting for overlapping updates.
func (s Strategy) OfOverlapping() Setting {
	switch s {
	case Serial, Whole:
		return Never
	case Pipelined:
		return Always
	case ByVerdict:
	}
	return Auto
}
