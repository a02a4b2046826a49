// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Role is an Azure role definition, as in az role definition create. Scopes are ignored.
type Role struct {
	Name             string   `json:"Name"`
	ID               string   `json:"Id,omitempty"`
	IsCustom         bool     `json:"IsCustom"`
	Description      string   `json:"Description"`
	Actions          []string `json:"Actions"`
	NotActions       []string `json:"NotActions"`
	DataActions      []string `json:"DataActions"`
	NotDataActions   []string `json:"NotDataActions"`
	AssignableScopes []string `json:"AssignableScopes"`
}

// ParseRole parses a role definition.
func ParseRole(raw []byte) (*Role, error) {
	r := &Role{}
	if err := decodeStrict(raw, r); err != nil {
		return nil, fmt.Errorf("role definition: %w", err)
	}
	if len(r.Actions) == 0 {
		return nil, errors.New("role definition: it has no Actions")
	}
	return r, nil
}

// AllowsAction reports whether the role includes an action, ignoring case.
func (r *Role) AllowsAction(action string) bool {
	holds := func(pattern string) bool { return matchesWildcard(strings.ToLower(pattern), strings.ToLower(action)) }
	return slices.ContainsFunc(r.Actions, holds) && !slices.ContainsFunc(r.NotActions, holds)
}

func matchesWildcard(pattern, whole string) bool {
	head, tail, open := strings.Cut(pattern, "*")
	if !open || !strings.HasPrefix(whole, head) {
		return pattern == whole
	}
	for i := len(head); i <= len(whole); i++ {
		if matchesWildcard(tail, whole[i:]) {
			return true
		}
	}
	return false
}

func (e *Emulator) authorize(x *exchange) *Problem {
	list := x.requiredPermissions()
	for _, a := range list {
		if !slices.Contains(x.call.Actions, a.action) {
			x.call.Actions = append(x.call.Actions, a.action)
		}
	}
	role := e.opts.Role
	for i, a := range list {
		if e.isDenied(a) {
			return e.rejectDenied(x.describeClient(), list, i)
		}
		if role == nil || role.AllowsAction(a.action) {
			continue
		}
		p, client := &Problem{Status: http.StatusForbidden, Code: "AuthorizationFailed", Gateway: true}, x.describeClient()
		if i == 0 {
			p.Message = fmt.Sprintf("%s does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. "+
				"If access was recently granted, please refresh your credentials.", client, a.action, a.scope)
			return p
		}
		p.Code = "LinkedAuthorizationFailed"
		p.Message = fmt.Sprintf("%s has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform "+
			"action '%s' on the linked scope(s) '%s' or the linked scope(s) are invalid.", client, list[0].action, list[0].scope, a.action, a.scope)
		return p
	}
	return nil
}

func (x *exchange) describeClient() string {
	return fmt.Sprintf("The client '%s' with object id '%[1]s'", callerID(x.callerID))
}

// callerID has the format of an object ID.
func callerID(digest string) string {
	return fmt.Sprintf("%s-%s-%s-8000-%012x", digest[:8], digest[8:12], digest[12:16], 0)
}
