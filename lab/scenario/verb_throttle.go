// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/http"
	"strings"
)

func doThrottle(s *Stage, a *reader) (string, error) {
	match := s.whereLocked(a, "any")
	action := map[string]any{"status": http.StatusTooManyRequests}
	withCode(action, a.text("code", "SubscriptionRequestsThrottled"))
	if by := a.duration("by", 0); by > 0 {
		action["delay"] = by.String()
	}
	return "", s.arm(a, match, action)
}

// withCode adds an error code and, after a slash, a detail code.
func withCode(action map[string]any, code string) {
	code, detail, _ := strings.Cut(code, "/")
	if code != "" {
		action["code"] = code
	}
	if detail != "" {
		action["details"] = []map[string]any{{"code": detail, "message": "The script asks for this."}}
	}
}

// arm parses the arguments common to all faults and adds the fault.
func (s *Stage) arm(a *reader, match, action map[string]any) error {
	if after := a.text("retry-after", ""); after != "" {
		action["headers"] = map[string]any{"Retry-After": after}
	}
	times, lasts := a.number("times", 0), a.duration("for", 0)
	if err := a.err(); err != nil {
		return err
	}
	return s.addFault(match, action, times, lasts)
}

func (s *Stage) whereLocked(a *reader, fallback string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where(a, fallback)
}
