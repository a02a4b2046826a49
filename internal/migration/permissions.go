// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"path"

	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/words"
)

const maxActions = 20

// missingPermissions also reports scopes that can't be checked.
func missingPermissions(ctx context.Context, of Azure, j migrate.Journal, snapshot migrate.Snapshot) (all []migrate.Finding) {
	for _, right := range migrate.RequiredPermissions(j, snapshot) {
		var missing []string
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			missing, err = of.Missing(ctx, right.Scope, right.Actions)
			return err
		})
		at := path.Base(right.Scope)
		switch {
		case err != nil:
			all = append(all, migrate.Finding{Reason: migrate.ReasonPermissionsUnknown, Message: fmt.Sprintf(
				"whether Weir's identity has the rights on %s is not known: %v; config/azure-role-migration.json has them, and the one to ask for them", at, err)})
		case len(missing) > 0:
			all = append(all, migrate.Finding{Reason: migrate.ReasonPermissionMissing, IsBlocker: true, Message: fmt.Sprintf(
				"Weir's identity lacks %s on %s: assign config/azure-role.json and config/azure-role-migration.json there; Azure takes some minutes", words.FormatList(missing, maxActions), right.Scope)})
		}
	}
	return all
}
