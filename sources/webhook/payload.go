package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// github reads a push. A webhook may be set to send JSON, or a form with JSON in
// it.
func github(header http.Header, body []byte) ([]push, error) {
	if header.Get("X-GitHub-Event") != "push" {
		return nil, nil
	}
	return common(header, body)
}

// gitea reads a push of Gitea or Forgejo, whose payload is as GitHub's.
func gitea(header http.Header, body []byte) ([]push, error) {
	for _, name := range []string{"X-Forgejo-Event", "X-Gitea-Event", "X-Gogs-Event", "X-GitHub-Event"} {
		if kind := header.Get(name); kind != "" && kind != "push" {
			return nil, nil
		}
	}
	return common(header, body)
}

func common(header http.Header, body []byte) ([]push, error) {
	var p struct {
		Ref        string `json:"ref"`
		Repository struct {
			CloneURL string `json:"clone_url"`
			SSHURL   string `json:"ssh_url"`
			HTMLURL  string `json:"html_url"`
		} `json:"repository"`
	}
	content, err := inForm(header, body, "payload")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &p); err != nil {
		return nil, fmt.Errorf("the payload is not as a push has it: %w", err)
	}
	return []push{{repositories: []string{p.Repository.CloneURL, p.Repository.SSHURL, p.Repository.HTMLURL}, ref: p.Ref}}, nil
}

// inForm is the JSON of a body that is JSON or a form.
func inForm(header http.Header, body []byte, field string) ([]byte, error) {
	if !isForm(header) {
		return body, nil
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("the form cannot be read: %w", err)
	}
	return []byte(values.Get(field)), nil
}

func isForm(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// gitlab reads a push, of a branch or a tag, by a webhook or a system hook.
func gitlab(_ http.Header, body []byte) ([]push, error) {
	var p struct {
		ObjectKind string `json:"object_kind"`
		EventName  string `json:"event_name"`
		Ref        string `json:"ref"`
		Project    struct {
			HTTP string `json:"git_http_url"`
			SSH  string `json:"git_ssh_url"`
			Web  string `json:"web_url"`
		} `json:"project"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("the payload is not as a push has it: %w", err)
	}
	kind := p.ObjectKind
	if kind == "" {
		kind = p.EventName
	}
	if kind != "push" && kind != "tag_push" {
		return nil, nil
	}
	return []push{{repositories: []string{p.Project.HTTP, p.Project.SSH, p.Project.Web}, ref: p.Ref}}, nil
}

// bitbucket reads a push of Bitbucket Cloud, or of Bitbucket Data Center.
func bitbucket(header http.Header, body []byte) ([]push, error) {
	switch header.Get("X-Event-Key") {
	case "repo:push":
		return bitbucketCloud(body)
	case "repo:refs_changed":
		return bitbucketServer(body)
	default:
		return nil, nil
	}
}

func bitbucketCloud(body []byte) ([]push, error) {
	type at struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	var p struct {
		Push struct {
			Changes []struct {
				New *at `json:"new"`
				Old *at `json:"old"`
			} `json:"changes"`
		} `json:"push"`
		Repository struct {
			Links struct {
				HTML struct {
					Href string `json:"href"`
				} `json:"html"`
			} `json:"links"`
		} `json:"repository"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("the payload is not as a push has it: %w", err)
	}
	var pushes []push
	for _, change := range p.Push.Changes {
		ref := change.New
		if ref == nil {
			ref = change.Old // it was deleted
		}
		if ref == nil {
			continue
		}
		full := "refs/heads/" + ref.Name
		if ref.Type == "tag" {
			full = "refs/tags/" + ref.Name
		}
		pushes = append(pushes, push{repositories: []string{p.Repository.Links.HTML.Href}, ref: full})
	}
	return pushes, nil
}

func bitbucketServer(body []byte) ([]push, error) {
	var p struct {
		Repository struct {
			Links struct {
				Clone []struct {
					Href string `json:"href"`
				} `json:"clone"`
			} `json:"links"`
		} `json:"repository"`
		Changes []struct {
			RefID string `json:"refId"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("the payload is not as a push has it: %w", err)
	}
	var repositories []string
	for _, clone := range p.Repository.Links.Clone {
		repositories = append(repositories, clone.Href)
	}
	if len(repositories) == 0 {
		return nil, errors.New("the payload has no clone links: it is of a version that is not served; use the form plain")
	}
	var pushes []push
	for _, change := range p.Changes {
		pushes = append(pushes, push{repositories: repositories, ref: change.RefID})
	}
	return pushes, nil
}

// plain reads what any script can send: a repository and a ref, as JSON or as a
// form.
func plain(header http.Header, body []byte) ([]push, error) {
	var p struct {
		Repository string `json:"repository"`
		Ref        string `json:"ref"`
	}
	if isForm(header) {
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		p.Repository, p.Ref = values.Get("repository"), values.Get("ref")
	} else if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("the body is not JSON as {\"repository\": …, \"ref\": …}: %w", err)
	}
	if p.Ref != "" && !strings.HasPrefix(p.Ref, "refs/") {
		return nil, errors.New("the ref must be in full, as refs/heads/main, or be left out")
	}
	return []push{{repositories: []string{p.Repository}, ref: p.Ref}}, nil
}
