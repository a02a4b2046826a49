// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"fmt"
	"path"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/skumigration/phase"
)

const maxActions = 20

// missingPermissions also reports scopes that can't be checked.
func missingPermissions(ctx context.Context, of Azure, j phase.Journal, snapshot phase.Snapshot) (findings []phase.Finding) {
	for _, permission := range phase.RequiredPermissions(j, snapshot) {
		var missing []string
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			missing, err = of.Missing(ctx, permission.Scope, permission.Actions)
			return err
		})
		at := path.Base(permission.Scope)
		switch {
		case err != nil:
			findings = append(findings, phase.Finding{Reason: phase.ReasonPermissionsUnknown, Message: fmt.Sprintf(
				"whether Weir's identity has the rights on %s is not known: %v; config/azure-role-migration.json has them, and the permission to read them", at, err)})
		case len(missing) > 0:
			findings = append(findings, phase.Finding{Reason: phase.ReasonPermissionMissing, IsBlocker: true, Message: fmt.Sprintf(
				"Weir's identity lacks %s on %s: assign config/azure-role.json and config/azure-role-migration.json there; a new assignment can take some minutes", humanize.FormatList(missing, maxActions), permission.Scope)})
		}
	}
	return findings
}
