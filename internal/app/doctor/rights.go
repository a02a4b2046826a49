// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
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
	"weir.dev/weir/internal/app/reach"
	"weir.dev/weir/internal/words"
)

const shippedNamespace = "weir-system"

type role struct {
	rbacv1.Role        // a ClusterRole has no namespace
	dir         string // below config/
}

// whenNeeded reports whether the role of a directory is needed, and the setting that decides it.
func (d Doctor) whenNeeded(dir string) (needed bool, with string) {
	switch dir {
	case "metrics":
		return false, "--metrics-secure"
	case "admin-state":
		return d.Azure == nil || d.Azure.Broken() || d.Azure.Config.SetsAdminState(), "enableNodeAdminState"
	case "resource-lease":
		return d.Azure != nil && d.Azure.Config.TakesResourceLease(), "useResourceLease"
	case "several-load-balancers":
		return d.Azure != nil && len(d.Azure.Config.Configurations) > 0, "multipleStandardLoadBalancerConfigurations"
	}
	return true, ""
}

func (d Doctor) rights() []named {
	roles, err := shipped()
	if err != nil {
		return []named{{"rights", func(context.Context) []Check { return one(Unknown, err.Error(), "") }}}
	}
	var all []named
	ask := d.asker()
	for _, r := range roles {
		name := "rights " + r.Name
		if r.Namespace == shippedNamespace {
			r.Namespace = d.Namespace
		}
		if r.Namespace != "" {
			name += " in " + r.Namespace
		}
		all = append(all, named{name, func(ctx context.Context) []Check { return d.role(ctx, r, ask) }})
	}
	return all
}

func shipped() (all []role, err error) {
	err = fs.WalkDir(config.Roles, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".yaml") {
			return err
		}
		content, err := config.Roles.ReadFile(file)
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			r := role{dir: path.Dir(file)}
			err = errors.Join(err, yaml.Unmarshal(document, &r.Role))
			if r.Kind == "Role" || r.Kind == "ClusterRole" {
				all = append(all, r)
			}
		}
		return err
	})
	return all, err
}

func (d Doctor) role(ctx context.Context, r role, ask asker) []Check {
	needed, with := d.whenNeeded(r.dir)
	checked, missing := 0, []string{}
	for _, what := range demands(r) {
		may, err := ask(ctx, what)
		if err != nil {
			if apierrors.IsForbidden(err) {
				return one(Unknown, fmt.Sprintf("you may not ask what ServiceAccount %s/%s may do", d.Namespace, d.ServiceAccount),
					"run it as a user who may create subjectaccessreviews, or impersonate one")
			}
			return notAnswered(ctx, err)
		}
		if checked++; !may {
			missing = append(missing, inWords(what))
		}
	}
	apply := "kubectl apply --server-side -k config"
	if with != "" {
		apply += "/" + r.dir
	}
	switch {
	case len(missing) == 0:
		return one(OK, fmt.Sprintf("all of %s", words.Count(checked, "right")), "")
	case needed:
		return one(Fail, fmt.Sprintf("ServiceAccount %s/%s may not %s", d.Namespace, d.ServiceAccount, words.List(missing, 5)), apply)
	case len(missing) == checked:
		return one(OK, "not given, and needed with "+with+" alone", "")
	}
	return one(Warn, "part of it is missing, which "+with+" needs: "+words.List(missing, 5), apply)
}

func demands(r role) (all []authorizationv1.ResourceAttributes) {
	for _, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range rule.Resources {
			kind, sub, _ := strings.Cut(resource, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, authorizationv1.ResourceAttributes{
						Namespace: r.Namespace, Verb: verb, Group: rule.APIGroups[0], Resource: kind, Subresource: sub, Name: name,
					})
				}
			}
		}
	}
	return all
}

// inWords formats an access, such as "get pods/log in default".
func inWords(what authorizationv1.ResourceAttributes) string {
	text := what.Verb + " " + what.Resource
	if what.Subresource != "" {
		text += "/" + what.Subresource
	}
	if what.Name != "" {
		text += " " + what.Name
	}
	if what.Namespace != "" {
		text += " in " + what.Namespace
	}
	return text
}

type asker func(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error)

// asker uses SubjectAccessReviews. If the caller may not create those, it uses SelfSubjectAccessReviews as
// the controller's account.
func (d Doctor) asker() asker {
	user := "system:serviceaccount:" + d.Namespace + ":" + d.ServiceAccount
	var as client.Client // nil while SubjectAccessReviews are allowed
	return func(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
		if as != nil {
			return self(ctx, as, what)
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + d.Namespace, "system:authenticated"}, ResourceAttributes: &what,
		}}
		err := d.API.Create(ctx, review)
		if err == nil || !apierrors.IsForbidden(err) {
			return review.Status.Allowed, err
		}
		c, notAs := d.as(ctx, user)
		switch {
		case notAs != nil:
			return false, notAs
		case c == nil:
			return false, err
		}
		may, err := self(ctx, c, what)
		if err == nil {
			as = c
		}
		return may, err
	}
}

// as returns a client for an account. It returns nil if the caller already impersonates another account,
// because impersonation cannot be nested.
func (d Doctor) as(ctx context.Context, user string) (client.Client, error) {
	who := &authenticationv1.SelfSubjectReview{}
	if err := d.API.Create(ctx, who); err == nil && who.Status.UserInfo.Username == user {
		return d.API, nil
	}
	if d.REST.Impersonate.UserName != "" {
		return nil, nil //nolint:nilnil // there is none
	}
	rc := rest.CopyConfig(d.REST)
	rc.Impersonate = rest.ImpersonationConfig{UserName: user}
	return reach.Client(rc)
}

func self(ctx context.Context, as client.Client, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	err := as.Create(ctx, review)
	return review.Status.Allowed, err
}
