// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strings"
)

// denyAssignment is the name of the deny assignment of locked groups.
const denyAssignment = "NRGLockdown"

// isDenied reports whether a deny assignment blocks an action at a scope. It blocks everything but reads in a
// locked resource group, whatever roles the caller has.
func (e *Emulator) isDenied(a permission) bool {
	return !strings.HasSuffix(a.action, "/read") && e.lockedGroup(a.scope) != ""
}

// lockedGroup returns the locked resource group that contains a scope, or "".
func (e *Emulator) lockedGroup(scope string) string {
	parts := strings.Split(scope, "/")
	if len(parts) < 5 || !strings.EqualFold(parts[3], "resourceGroups") {
		return ""
	}
	for _, name := range e.opts.LockedGroups {
		if strings.EqualFold(name, parts[4]) {
			return strings.Join(parts[:5], "/")
		}
	}
	return ""
}

// rejectDenied returns the error for a request if the i-th of its permissions is denied.
func (e *Emulator) rejectDenied(client string, list []permission, i int) *Problem {
	own, denied := list[0], list[i]
	if i > 0 {
		return &Problem{
			Status: http.StatusForbidden, Code: "LinkedAuthorizationFailed", Gateway: true,
			Message: fmt.Sprintf("%s has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform action '%s' "+
				"on the '0' linked scope(s) '' or the linked scope(s) are invalid and is blocked by deny assignments on the '1' linked scope(s) '%s'.",
				client, own.action, own.scope, denied.action, denied.scope),
		}
	}
	return &Problem{
		Status: http.StatusForbidden, Code: "DenyAssignmentAuthorizationFailed", Gateway: true,
		Message: fmt.Sprintf("%s has permission to perform action '%s' on scope '%s'; however, the access is denied because of the deny assignment "+
			"with name '%s' at scope '%s'.", client, denied.action, denied.scope, denyAssignment, e.lockedGroup(denied.scope)),
	}
}
