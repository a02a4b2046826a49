// SPDX-License-Identifier: Apache-2.0

package behavior

// secondResults is a bit set per two-answer question: the worlds with the second answer. Any two sets
// intersect, and none contains another.
var secondResults = []uint8{0b00111, 0b11001, 0b01110, 0b10011, 0b11100, 0b01011, 0b10110, 0b01101, 0b11010, 0b10101}

// SampleBehaviors returns few behaviors that include every answer to every question and, together with
// [AssumedBehavior], every pair of answers to two-answer questions.
func SampleBehaviors() []Behavior {
	worlds := make([]Behavior, 6)
	pairs := 0
	for i, q := range AllProperties() {
		n := len(q.Results)
		for w := range worlds {
			a := q.Results[w%n]
			if n == 2 {
				a = q.Results[secondResults[pairs%len(secondResults)]>>w&1]
			}
			worlds[w].setResult(i, a)
		}
		if n == 2 {
			pairs++
		}
	}
	return worlds
}

// RandomBehavior returns a [Behavior] with answers selected by pick(n) in [0, n).
func RandomBehavior(pick func(n int) int) Behavior {
	var b Behavior
	for i, q := range AllProperties() {
		b.setResult(i, q.Results[pick(len(q.Results))])
	}
	return b
}
