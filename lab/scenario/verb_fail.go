// SPDX-License-Identifier: Apache-2.0

package scenario

import "net/http"

func doFail(s *Stage, a *argReader) (string, error) {
	status, code, kept := a.intArg("status", http.StatusInternalServerError), a.textArg("code", ""), a.flagArg("kept")
	action := map[string]any{}
	addErrorCode(action, code)
	for i, arg := range a.argsLeft {
		if arg.Key != "on" || len(arg.Values) != 1 {
			continue
		}
		switch arg.Values[0] {
		case "operation": // accepted, then the operation fails
			a.argsLeft[i].Values = []string{"PUT"}
			if action["code"] == nil {
				action["code"] = "InternalServerError"
			}
			action = map[string]any{"operation": map[string]any{"fail": action}}
			if kept { // the written content remains
				action["applied"] = true
			}
			status = 0
		case "poll": // accepted, then polling fails
			a.argsLeft[i].Values = []string{"PUT"}
			action["status"], action["times"] = status, a.intArg("polls", 1)
			action = map[string]any{"polls": action}
			status = 0
		}
	}
	if status != 0 {
		action["status"] = status
	}
	return "", s.addFaultFrom(a, s.parseLockMatch(a, "any"), action)
}
