// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Step is the input of OrderSteps.
type Step struct {
	Name string
	// DependsOn: nil means all earlier steps, empty means none.
	DependsOn []string
}

// Order is the execution order of steps, by index.
type Order struct {
	Steps        []int
	dependencies [][]int
}

// OrderSteps keeps the listed order but moves steps after their dependencies.
func OrderSteps(steps []Step) (Order, error) {
	place := make(map[string]int, len(steps))
	for i, s := range steps {
		place[s.Name] = i
	}
	o := Order{dependencies: make([][]int, len(steps))}
	for i, s := range steps {
		if s.DependsOn == nil {
			for before := range i {
				o.dependencies[i] = append(o.dependencies[i], before)
			}
		}
		for _, name := range s.DependsOn {
			on, known := place[name]
			if !known {
				return Order{}, fmt.Errorf("step %s depends on step %s, which is not there", s.Name, name)
			}
			o.dependencies[i] = append(o.dependencies[i], on)
		}
	}
	placed := make([]bool, len(steps))
	for range steps {
		next := 0
		for next < len(steps) && (placed[next] || o.UnfinishedDependency(next, placed) >= 0) {
			next++
		}
		if next == len(steps) {
			return Order{}, o.cycleError(steps, placed)
		}
		placed[next], o.Steps = true, append(o.Steps, next)
	}
	return o, nil
}

// UnfinishedDependency returns an unfinished dependency of a step, or -1.
func (o Order) UnfinishedDependency(step int, done []bool) int {
	for _, on := range o.dependencies[step] {
		if !done[on] {
			return on
		}
	}
	return -1
}

// cycleError names a dependency cycle. Every unplaced step waits for another unplaced one, so following
// them reaches a step twice.
func (o Order) cycleError(steps []Step, placed []bool) error {
	var seen []int
	at := slices.Index(placed, false)
	for !slices.Contains(seen, at) {
		seen = append(seen, at)
		at = o.UnfinishedDependency(at, placed)
	}
	seen = append(seen[slices.Index(seen, at):], at)
	names := make([]string, len(seen))
	for i, step := range seen {
		names[i] = steps[step].Name
	}
	return fmt.Errorf("steps wait for each other: %s (one without dependsOn waits for all that are listed before it)", strings.Join(names, ", which waits for "))
}
