// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

func checkRetryAfter(s *Stage) []string {
	broken := append(s.emulator.EarlyCalls(), s.history.earlyAttempts...)
	for _, c := range s.history.calls {
		// Requests after an accepted write are not restricted.
		if c.closedReason != "" && (c.kind == "GET" || c.kind == "PUT") {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.formatTime(c.at), c.closedReason))
		}
	}
	return broken
}

func checkWriteOverlap(s *Stage) []string { return s.history.overlaps }

func checkRetries(s *Stage) []string {
	var broken []string
	for _, r := range s.history.reports {
		report := func(format string, args ...any) {
			broken = append(broken, r.Pool.Name+": "+fmt.Sprintf(format, args...))
		}
		if r.Budget != s.opts.MaxRetries {
			report("the budget is %d, not %d", r.Budget, s.opts.MaxRetries)
		}
		if r.RetriesUsed > r.Budget {
			report("%d retries used of %d", r.RetriesUsed, r.Budget)
		}
		if r.RetriesUsed > r.consecutiveFailures && !r.Admin {
			report("%d retries used after %d failed attempts in a row", r.RetriesUsed, r.consecutiveFailures)
		}
		if r.Outcome != diff.Retriable || !r.newest || r.serviceDeleted || r.Admin {
			continue
		}
		if r.isReadOnly() && r.failureReason != "" {
			if r.WillRetry {
				report("another attempt follows a look, although the change was given up")
			}
			continue
		}
		switch {
		case r.failed > 1+r.Budget:
			report("%d attempts failed since the last change, at most %d may be made", r.failed, 1+r.Budget)
		case r.WillRetry && r.failed > r.Budget:
			report("another attempt follows the %d that failed, of at most %d", r.failed, 1+r.Budget)
		case !r.WillRetry && r.failed < 1+r.Budget:
			report("given up after %d attempts of %d", r.failed, 1+r.Budget)
		}
	}
	return broken
}

func checkEvents(s *Stage) []string {
	var broken []string
	for _, dead := range s.history.killedProcessReports {
		broken = append(broken, "a killed process still said "+dead)
	}
	for _, r := range s.history.reports {
		last := append(serviceNames(r.Updated), serviceNames(r.Failed)...)
		for _, names := range [][]string{append(serviceNames(r.Retrying), serviceNames(r.Failed)...), last} {
			slices.Sort(names)
			if twice := len(names) - len(slices.Compact(slices.Clone(names))); twice > 0 {
				broken = append(broken, fmt.Sprintf("%s: the same word twice for one attempt: %v", r.Pool.Name, names))
			}
		}
		if how := forbiddenEvents(r, serviceNames(r.Retrying), last); how != "" {
			broken = append(broken, fmt.Sprintf("%s: %s: %s", r.Pool.Name, r.Outcome, how))
		}
	}
	return broken
}

// forbiddenEvents returns the events that an outcome must not emit.
func forbiddenEvents(r attemptReport, retrying, last []string) string {
	if r.serviceDeleted && len(retrying)+len(r.Failed) > 0 {
		return "a Service that is gone is told of a failure"
	}
	if r.isReadOnly() && len(r.Failed) > 0 && r.failureReason == failureReason(r.Report) {
		return fmt.Sprintf("%v are told of %s again by a look", serviceNames(r.Failed), r.failureReason)
	}
	switch r.Outcome {
	case diff.Stale, diff.Postponed, diff.Shutdown, diff.Rejected:
		if len(retrying)+len(last) > 0 {
			return fmt.Sprintf("nobody is to be told, and %v were", append(retrying, last...))
		}
	case diff.Unchanged:
		if len(retrying)+len(r.Failed) > 0 {
			return "a pool in sync is no failure"
		}
		for _, name := range serviceNames(r.Updated) {
			if before := r.previousEvents[name]; before != "Retrying" && before != "Failed" && before != deletedEvent {
				return fmt.Sprintf("%s was told Updated, and had heard %q before", name, before)
			}
		}
		for name, before := range r.previousEvents {
			if (before == "Retrying" || before == "Failed") && !r.serviceDeleted && !r.isPaused && !slices.Contains(serviceNames(r.Updated), name) {
				return fmt.Sprintf("%s still believes %s", name, before)
			}
		}
	case diff.Written:
		if len(retrying)+len(r.Failed) > 0 {
			return "a written pool is no failure"
		}
	case diff.Retriable, diff.Terminal:
		if len(r.Updated) > 0 {
			return "a failed attempt updated nothing"
		}
	}
	return ""
}

func checkMetrics(s *Stage) []string {
	var broken []string
	for _, r := range s.history.reports {
		if len(r.Updated) > 0 && len(r.Failed) > 0 {
			broken = append(broken, r.Pool.Name+": one attempt is observed as a success and as a failure")
		}
		if notified := len(r.Updated)+len(r.Failed) > 0; notified && (r.InSync == (len(r.Failed) > 0)) {
			broken = append(broken, fmt.Sprintf("%s: settled is %t, and it is observed as the opposite", r.Pool.Name, r.InSync))
		}
	}
	return broken
}

func serviceNames(services []schedule.ServiceName) []string {
	var names []string
	for _, s := range services {
		names = append(names, s.Name)
	}
	return names
}
