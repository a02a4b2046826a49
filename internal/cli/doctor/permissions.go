// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/humanize"
)

const installNamespace = "weir-system"

type shippedRole struct {
	rbacv1.Role        // a ClusterRole has no namespace
	dir         string // below config/
}

// isRoleNeeded reports whether the role of a directory is needed, and the setting that decides it.
func (d Doctor) isRoleNeeded(dir string) (needed bool, with string) {
	switch dir {
	case "metrics":
		return false, "--metrics-secure"
	case "gateway-api":
		return false, "--gateway-api"
	case "delay-node-deletion":
		return false, "--delay-node-deletion"
	case "readiness-gates":
		return false, "--readiness-gates"
	case "admin-state":
		return d.Azure == nil || d.Azure.IsInvalid() || d.Azure.Config.SetsAdminState(), "enableNodeAdminState"
	case "resource-lease":
		return d.Azure != nil && d.Azure.Config.IsResourceLeaseEnabled(), "useResourceLease"
	case "several-load-balancers":
		return d.Azure != nil && len(d.Azure.Config.Configurations) > 0, "multipleStandardLoadBalancerConfigurations"
	}
	return true, ""
}

// account names the account of the checked rights.
func (d Doctor) account() string {
	if d.outside != "" {
		return "your account"
	}
	return "ServiceAccount " + d.Namespace + "/" + d.ServiceAccount
}

func (d Doctor) permissionChecks() []namedCheck {
	roles, err := loadRoles()
	if err != nil {
		return []namedCheck{{"rights", func(context.Context) []Check { return singleResult(Unknown, err.Error(), "") }}}
	}
	var checks []namedCheck
	check := d.newAccessChecker()
	if d.outside != "" {
		check = func(ctx context.Context, attrs authorizationv1.ResourceAttributes) (bool, error) {
			return checkOwnAccess(ctx, d.API, attrs)
		}
		checks = append(checks, namedCheck{"rights", func(context.Context) []Check {
			return singleResult(OK, d.outside+" leads outside of the cluster, without a ServiceAccount: the rights below are those of your kubeconfig, which should be the controller's", "")
		}})
	}
	for _, r := range roles {
		name := "rights " + r.Name
		if r.Namespace == installNamespace {
			r.Namespace = cmp.Or(d.leaseNamespace, d.Namespace)
		}
		if r.Namespace != "" {
			name += " in " + r.Namespace
		}
		checks = append(checks, namedCheck{name, func(ctx context.Context) []Check { return d.checkRole(ctx, r, check) }})
	}
	return checks
}

func loadRoles() (roles []shippedRole, err error) {
	err = fs.WalkDir(config.Roles, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".yaml") {
			return err
		}
		content, err := config.Roles.ReadFile(file)
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			r := shippedRole{dir: path.Dir(file)}
			err = errors.Join(err, yaml.Unmarshal(document, &r.Role))
			if r.Kind == "Role" || r.Kind == "ClusterRole" {
				roles = append(roles, r)
			}
		}
		return err
	})
	return roles, err
}

func (d Doctor) checkRole(ctx context.Context, r shippedRole, check accessChecker) []Check {
	needed, with := d.isRoleNeeded(r.dir)
	checked, missing := 0, []string{}
	for _, attrs := range requiredAccess(r) {
		may, err := check(ctx, attrs)
		if err != nil {
			if apierrors.IsForbidden(err) {
				return singleResult(Unknown, fmt.Sprintf("you may not check the permissions of ServiceAccount %s/%s", d.Namespace, d.ServiceAccount),
					"run it as a user who may create subjectaccessreviews, or impersonate one")
			}
			return noResponse(ctx, err)
		}
		if checked++; !may {
			missing = append(missing, describeAccess(attrs))
		}
	}
	apply := "kubectl apply --server-side -k config/" + r.dir + ", or with Helm: helm upgrade"
	switch {
	case len(missing) == 0:
		return singleResult(OK, fmt.Sprintf("all of %s", humanize.FormatCount(checked, "right")), "")
	case needed:
		return singleResult(Fail, fmt.Sprintf("%s may not %s", d.account(), humanize.FormatList(missing, 5)), d.grantRemedy(apply))
	case len(missing) == checked:
		return singleResult(OK, "not given, and needed with "+with+" alone", "")
	}
	return singleResult(Warn, "part of it is missing, which "+with+" needs: "+humanize.FormatList(missing, 5), d.grantRemedy(apply))
}

// grantRemedy describes how the account gets the rights of a role.
func (d Doctor) grantRemedy(apply string) string {
	if d.outside != "" {
		return "run weir doctor with the controller's kubeconfig; if that lacks them: " + apply + ", and bind the role to its user"
	}
	return apply
}

func requiredAccess(r shippedRole) (attributes []authorizationv1.ResourceAttributes) {
	for _, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range rule.Resources {
			kind, sub, _ := strings.Cut(resource, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					attributes = append(attributes, authorizationv1.ResourceAttributes{
						Namespace: r.Namespace, Verb: verb, Group: rule.APIGroups[0], Resource: kind, Subresource: sub, Name: name,
					})
				}
			}
		}
	}
	return attributes
}

// describeAccess formats an access, such as "get pods/log in default".
func describeAccess(attrs authorizationv1.ResourceAttributes) string {
	text := attrs.Verb + " " + attrs.Resource
	if attrs.Subresource != "" {
		text += "/" + attrs.Subresource
	}
	if attrs.Name != "" {
		text += " " + attrs.Name
	}
	if attrs.Namespace != "" {
		text += " in " + attrs.Namespace
	}
	return text
}

type accessChecker func(ctx context.Context, attrs authorizationv1.ResourceAttributes) (bool, error)

// newAccessChecker uses SubjectAccessReviews. If the caller may not create those, it uses SelfSubjectAccessReviews as
// the controller's account.
func (d Doctor) newAccessChecker() accessChecker {
	user := "system:serviceaccount:" + d.Namespace + ":" + d.ServiceAccount
	var as client.Client // nil while SubjectAccessReviews are allowed
	return func(ctx context.Context, attrs authorizationv1.ResourceAttributes) (bool, error) {
		if as != nil {
			return checkOwnAccess(ctx, as, attrs)
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + d.Namespace, "system:authenticated"}, ResourceAttributes: &attrs,
		}}
		err := d.API.Create(ctx, review)
		if err == nil || !apierrors.IsForbidden(err) {
			return review.Status.Allowed, err
		}
		c, notAs := d.clientAs(ctx, user)
		switch {
		case notAs != nil:
			return false, notAs
		case c == nil:
			return false, err
		}
		may, err := checkOwnAccess(ctx, c, attrs)
		if err == nil {
			as = c
		}
		return may, err
	}
}

// clientAs returns a client for an account. It returns nil if the caller already impersonates another account,
// because impersonation cannot be nested.
func (d Doctor) clientAs(ctx context.Context, user string) (client.Client, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := d.API.Create(ctx, review); err == nil && review.Status.UserInfo.Username == user {
		return d.API, nil
	}
	if d.REST.Impersonate.UserName != "" {
		return nil, nil //nolint:nilnil // there is none
	}
	rc := rest.CopyConfig(d.REST)
	rc.Impersonate = rest.ImpersonationConfig{UserName: user}
	return cli.NewClient(rc)
}

func checkOwnAccess(ctx context.Context, as client.Client, attrs authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attrs}}
	err := as.Create(ctx, review)
	return review.Status.Allowed, err
}
