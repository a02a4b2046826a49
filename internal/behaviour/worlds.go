// SPDX-License-Identifier: Apache-2.0

package behaviour

// turned is a bit set per two-answer question: the worlds with the second answer. Any two sets
// intersect, and none contains another.
var turned = []uint8{0b00111, 0b11001, 0b01110, 0b10011, 0b11100, 0b01011, 0b10110, 0b01101, 0b11010, 0b10101}

// Worlds returns few behaviors that include every answer to every question and, together with
// [Assumed], every pair of answers to two-answer questions.
func Worlds() []Behaviour {
	worlds := make([]Behaviour, 6)
	pairs := 0
	for i, q := range Questions() {
		n := len(q.Answers)
		for w := range worlds {
			a := q.Answers[w%n]
			if n == 2 {
				a = q.Answers[turned[pairs%len(turned)]>>w&1]
			}
			worlds[w].set(i, a)
		}
		if n == 2 {
			pairs++
		}
	}
	return worlds
}

// Drawn returns a [Behaviour] with answers selected by pick(n) in [0, n).
func Drawn(pick func(n int) int) Behaviour {
	var b Behaviour
	for i, q := range Questions() {
		b.set(i, q.Answers[pick(len(q.Answers))])
	}
	return b
}
