// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

func notBeforeTheTime(s *Stage) []string {
	broken := append(s.emu.EarlyCalls(), s.journal.hasty...)
	for _, c := range s.journal.calls {
		// Requests after an accepted write are not restricted.
		if c.closed != "" && (c.kind == "GET" || c.kind == "PUT") {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.clock(c.at), c.closed))
		}
	}
	return broken
}

func oneWrite(s *Stage) []string { return s.journal.overlaps }

func budget(s *Stage) []string {
	var broken []string
	for _, r := range s.journal.reports {
		say := func(format string, args ...any) {
			broken = append(broken, r.Pool.Name+": "+fmt.Sprintf(format, args...))
		}
		if r.Budget != s.opts.MaxRetries {
			say("the budget is %d, not %d", r.Budget, s.opts.MaxRetries)
		}
		if r.RetriesUsed > r.Budget {
			say("%d retries used of %d", r.RetriesUsed, r.Budget)
		}
		if r.RetriesUsed > r.row && !r.Admin {
			say("%d retries used after %d failed attempts in a row", r.RetriesUsed, r.row)
		}
		if r.Outcome != poolwrite.Retriable || !r.newest || r.serviceGone || r.Admin {
			continue
		}
		if r.looks() && r.surrender != "" {
			if r.WillRetry {
				say("another attempt follows a look, although the change was given up")
			}
			continue
		}
		switch {
		case r.failed > 1+r.Budget:
			say("%d attempts failed since the last change, at most %d may be made", r.failed, 1+r.Budget)
		case r.WillRetry && r.failed > r.Budget:
			say("another attempt follows the %d that failed, of at most %d", r.failed, 1+r.Budget)
		case !r.WillRetry && r.failed < 1+r.Budget:
			say("given up after %d attempts of %d", r.failed, 1+r.Budget)
		}
	}
	return broken
}

func words(s *Stage) []string {
	var broken []string
	for _, dead := range s.journal.posthumous {
		broken = append(broken, "a killed process still said "+dead)
	}
	for _, r := range s.journal.reports {
		last := append(names(r.Updated), names(r.Failed)...)
		for _, said := range [][]string{append(names(r.Retrying), names(r.Failed)...), last} {
			slices.Sort(said)
			if twice := len(said) - len(slices.Compact(slices.Clone(said))); twice > 0 {
				broken = append(broken, fmt.Sprintf("%s: the same word twice for one attempt: %v", r.Pool.Name, said))
			}
		}
		if how := wrongWords(r, names(r.Retrying), last); how != "" {
			broken = append(broken, fmt.Sprintf("%s: %s: %s", r.Pool.Name, r.Outcome, how))
		}
	}
	return broken
}

// wrongWords returns the events that an outcome must not emit.
func wrongWords(r report, retrying, last []string) string {
	if r.serviceGone && len(retrying)+len(r.Failed) > 0 {
		return "a Service that is gone is told of a failure"
	}
	if r.looks() && len(r.Failed) > 0 && r.surrender == surrenderTo(r.Report) {
		return fmt.Sprintf("%v are told of %s again by a look", names(r.Failed), r.surrender)
	}
	switch r.Outcome {
	case poolwrite.Stale, poolwrite.Postponed, poolwrite.Shutdown, poolwrite.Rejected:
		if len(retrying)+len(last) > 0 {
			return fmt.Sprintf("nobody is to be told, and %v were", append(retrying, last...))
		}
	case poolwrite.Unchanged:
		if len(retrying)+len(r.Failed) > 0 {
			return "a level pool is no failure"
		}
		for _, name := range names(r.Updated) {
			if was := r.before[name]; was != "Retrying" && was != "Failed" && was != lastWords {
				return fmt.Sprintf("%s was told Updated, and had heard %q before", name, was)
			}
		}
		for name, was := range r.before {
			if (was == "Retrying" || was == "Failed") && !r.serviceGone && !r.held && !slices.Contains(names(r.Updated), name) {
				return fmt.Sprintf("%s still believes %s", name, was)
			}
		}
	case poolwrite.Written:
		if len(retrying)+len(r.Failed) > 0 {
			return "a written pool is no failure"
		}
	case poolwrite.Retriable, poolwrite.Terminal:
		if len(r.Updated) > 0 {
			return "a failed attempt updated nothing"
		}
	}
	return ""
}

func observations(s *Stage) []string {
	var broken []string
	for _, r := range s.journal.reports {
		if len(r.Updated) > 0 && len(r.Failed) > 0 {
			broken = append(broken, r.Pool.Name+": one attempt is observed as a success and as a failure")
		}
		if told := len(r.Updated)+len(r.Failed) > 0; told && (r.InSync == (len(r.Failed) > 0)) {
			broken = append(broken, fmt.Sprintf("%s: settled is %t, and it is observed as the opposite", r.Pool.Name, r.InSync))
		}
	}
	return broken
}

func names(services []poolschedule.ServiceName) []string {
	var all []string
	for _, s := range services {
		all = append(all, s.Name)
	}
	return all
}
