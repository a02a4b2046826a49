// SPDX-License-Identifier: Apache-2.0

package scenario

import "net/http"

func doFail(s *Stage, a *reader) (string, error) {
	status, code, kept := a.number("status", http.StatusInternalServerError), a.text("code", ""), a.flag("kept")
	action := map[string]any{}
	withCode(action, code)
	for i, arg := range a.left {
		if arg.Key != "on" || len(arg.Values) != 1 {
			continue
		}
		switch arg.Values[0] {
		case "operation": // accepted, then the operation fails
			a.left[i].Values = []string{"PUT"}
			if action["code"] == nil {
				action["code"] = "InternalServerError"
			}
			action = map[string]any{"operation": map[string]any{"fail": action}}
			if kept { // the written content remains
				action["applied"] = true
			}
			status = 0
		case "poll": // accepted, then polling fails
			a.left[i].Values = []string{"PUT"}
			action["status"], action["times"] = status, a.number("polls", 1)
			action = map[string]any{"polls": action}
			status = 0
		}
	}
	if status != 0 {
		action["status"] = status
	}
	return "", s.arm(a, s.whereLocked(a, "any"), action)
}
