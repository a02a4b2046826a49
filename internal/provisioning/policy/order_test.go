// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parseSteps parses steps: "a b:a c:" is a, b after a, and c after none.
func parseSteps(text string) []Step {
	var steps []Step
	for word := range strings.FieldsSeq(text) {
		name, on, want := strings.Cut(word, ":")
		s := Step{Name: name}
		if want {
			s.DependsOn = strings.FieldsFunc(on, func(r rune) bool { return r == ',' })
		}
		if want && s.DependsOn == nil {
			s.DependsOn = []string{}
		}
		steps = append(steps, s)
	}
	return steps
}

func TestOrder(t *testing.T) {
	for steps, want := range map[string]string{
		"a b c":           "a b c",
		"a b:c c:":        "a c b", // c does not wait for b
		"c:b b:a a:":      "a b c",
		"a b:a c:a d":     "a b c d",
		"b:a a: c":        "a b c",
		"a:c b c":         "steps wait for each other: a, which waits for c, which waits for a",
		"x a:b b:c c:a":   "steps wait for each other: a, which waits for b, which waits for c, which waits for a (",
		"a b:b":           "steps wait for each other: b, which waits for b",
		"a b:a,elsewhere": "step b depends on step elsewhere, which is not there",
		"z:a a:b b:a":     "steps wait for each other: a, which waits for b, which waits for a",
	} {
		list := parseSteps(steps)
		o, err := OrderSteps(list)
		got := fmt.Sprint(err)
		if err == nil {
			var names []string
			for _, i := range o.Steps {
				names = append(names, list[i].Name)
			}
			got = strings.Join(names, " ")
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", steps, got, want)
		}
	}
}

// Only its dependencies hold a step back.
func TestStepDependencies(t *testing.T) {
	o, err := OrderSteps(parseSteps("a b:a c:a d e:"))
	if err != nil {
		t.Fatal(err)
	}
	done := []bool{true, false, true, false, false} // b has failed
	for step, want := range []int{-1, -1, -1, 1, -1} {
		if got := o.UnfinishedDependency(step, done); got != want {
			t.Errorf("step %d waits for %d, want %d", step, got, want)
		}
	}
}

// Each step comes once, after its dependencies and otherwise in listed order, or a cycle is
// reported.
func TestLawOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := make([]Step, rapid.IntRange(1, 8).Draw(t, "steps"))
		for i := range steps {
			steps[i].Name = string(rune('a' + i))
		}
		acyclic := rapid.Bool().Draw(t, "acyclic") // steps depend on earlier ones only
		for i := range steps {
			if rapid.Bool().Draw(t, "as listed") {
				continue
			}
			steps[i].DependsOn = []string{}
			for j := range steps {
				if j != i && (!acyclic || j < i) && rapid.IntRange(0, 3).Draw(t, "depends") == 0 {
					steps[i].DependsOn = append(steps[i].DependsOn, steps[j].Name)
				}
			}
		}
		o, err := OrderSteps(steps)
		if err != nil {
			if acyclic {
				t.Fatalf("%+v: %v", steps, err)
			}
			return
		}
		if acyclic && !slices.IsSorted(o.Steps) {
			t.Fatalf("%+v are done as %v, though they could be as they are listed", steps, o.Steps)
		}
		at := make([]int, len(steps))
		for i := range at {
			if at[i] = slices.Index(o.Steps, i); at[i] < 0 || len(o.Steps) != len(steps) {
				t.Fatalf("%+v are done as %v", steps, o.Steps)
			}
		}
		for i, s := range steps {
			for j, other := range steps {
				if (slices.Contains(s.DependsOn, other.Name) || s.DependsOn == nil && j < i) && at[j] > at[i] {
					t.Fatalf("%+v are done as %v: %s too early", steps, o.Steps, s.Name)
				}
			}
		}
	})
}
