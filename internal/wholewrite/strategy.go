// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"encoding/json"
	"slices"
	"strings"
)

// Strategy is how several pools of a load balancer are written that are due together.
type Strategy string

// The strategies. ByVerdict is the default: the one that takes fewest writes and least time of those
// that Azure was seen to take.
const (
	ByVerdict Strategy = "auto"
	Serial    Strategy = "serial"    // each when the one before has ended
	Pipelined Strategy = "pipelined" // each when the one before was accepted
	Whole     Strategy = "whole"     // by one write of the load balancer
)

// Strategies are those that there are.
func Strategies() []Strategy { return []Strategy{ByVerdict, Serial, Pipelined, Whole} }

// Valid reports whether it is one of them.
func (s Strategy) Valid() bool { return slices.Contains(Strategies(), s) }

// UnmarshalJSON takes words without regard to case.
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

// OfWhole is what the strategy says of writes of whole load balancers; Auto leaves it open.
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

// OfOverlapping is the same of writes of pools that overlap.
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
