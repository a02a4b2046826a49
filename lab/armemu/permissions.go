// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strings"
)

const readPermissions = "Microsoft.Authorization/permissions/read"

// servePermissions are the same at every scope.
func (e *Emulator) servePermissions(x *exchange) *Problem {
	scope, found := strings.CutSuffix(strings.ToLower(x.req.URL.Path), "/providers/microsoft.authorization/permissions")
	if !found || x.req.Method != http.MethodGet {
		return nil
	}
	x.call.Actions = []string{readPermissions}
	role := e.opts.Role
	if role == nil {
		role = &Role{Actions: []string{"*"}}
	}
	if e.opts.Role != nil && !role.AllowsAction(readPermissions) {
		return &Problem{Status: http.StatusForbidden, Code: "AuthorizationFailed", Gateway: true, Message: fmt.Sprintf(
			"The client does not have authorization to perform action '%s' over scope '%s' or the scope is invalid.", readPermissions, scope)}
	}
	x.done, x.status = true, http.StatusOK
	x.body = fields{"value": []any{fields{"actions": role.Actions, "notActions": append([]string{}, role.NotActions...)}}}
	return nil
}
