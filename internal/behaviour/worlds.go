// SPDX-License-Identifier: Apache-2.0

package behaviour

// turned says in which of the worlds a question with two answers has the second one: in
// three of the first five. Any two such sets meet, and neither holds the other.
var turned = []uint8{0b00111, 0b11001, 0b01110, 0b10011, 0b11100, 0b01011, 0b10110, 0b01101, 0b11010, 0b10101}

// Worlds returns few Azures, in which everything that has to hold in all of them can be
// tried: each answer to each question occurs, and of the questions with two answers, with
// Assumed, each pair of answers to any two.
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

// Drawn returns the Azure in which the answer to each question is the one that pick chooses
// of so many.
func Drawn(pick func(n int) int) Behaviour {
	var b Behaviour
	for i, q := range Questions() {
		b.set(i, q.Answers[pick(len(q.Answers))])
	}
	return b
}
