// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/http"
	"strings"
)

func doThrottle(s *Stage, a *argReader) (string, error) {
	match := s.parseLockMatch(a, "any")
	action := map[string]any{"status": http.StatusTooManyRequests}
	addErrorCode(action, a.textArg("code", "SubscriptionRequestsThrottled"))
	if by := a.durationArg("by", 0); by > 0 {
		action["delay"] = by.String()
	}
	return "", s.addFaultFrom(a, match, action)
}

// addErrorCode adds an error code and, after a slash, a detail code.
func addErrorCode(action map[string]any, code string) {
	code, detail, _ := strings.Cut(code, "/")
	if code != "" {
		action["code"] = code
	}
	if detail != "" {
		action["details"] = []map[string]any{{"code": detail, "message": "The script asks for this."}}
	}
}

// addFaultFrom parses the arguments common to all faults and adds the fault.
func (s *Stage) addFaultFrom(a *argReader, match, action map[string]any) error {
	if after := a.textArg("retry-after", ""); after != "" {
		action["headers"] = map[string]any{"Retry-After": after}
	}
	times, duration := a.intArg("times", 0), a.durationArg("for", 0)
	if err := a.joinErrors(); err != nil {
		return err
	}
	return s.addFault(match, action, times, duration)
}

func (s *Stage) parseLockMatch(a *argReader, fallback string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parseMatch(a, fallback)
}
