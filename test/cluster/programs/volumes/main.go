// Volumes gives each PersistentVolumeClaim of the storage class "folder" a
// folder of the node, and takes it back when the claim is gone. The controller
// manager has such a provisioner too, but only root can write to its folders.
//
//	volumes -server URL -keys DIR -folders DIR
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const class = "folder"

type object struct {
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		StorageClassName string          `json:"storageClassName"`
		VolumeName       string          `json:"volumeName"`
		AccessModes      json.RawMessage `json:"accessModes"`
		Resources        struct {
			Requests json.RawMessage `json:"requests"`
		} `json:"resources"`
		HostPath struct {
			Path string `json:"path"`
		} `json:"hostPath"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type list struct {
	Items []object `json:"items"`
}

type provisioner struct {
	client  *http.Client
	server  string
	folders string
}

func main() {
	server := flag.String("server", "", "the API server")
	keys := flag.String("keys", "", "folder with ca.crt, admin.crt, admin.key")
	folders := flag.String("folders", "", "where the claims' folders are made")
	flag.Parse()
	client, err := newClient(*keys)
	if err != nil {
		log.Fatal(err)
	}
	p := &provisioner{client: client, server: *server, folders: *folders}
	var last string
	for range time.Tick(time.Second) {
		said := ""
		if err := p.look(); err != nil {
			said = err.Error()
		}
		if said != "" && said != last {
			log.Print(said)
		}
		last = said
	}
}

func newClient(keys string) (*http.Client, error) {
	authority, err := os.ReadFile(filepath.Join(keys, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(keys, "admin.crt"), filepath.Join(keys, "admin.key"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("ca.crt holds no certificate")
	}
	return &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}},
	}, nil
}

// look makes the volumes that claims wait for, and removes those released.
func (p *provisioner) look() error {
	var claims, volumes list
	if err := p.do(http.MethodGet, "/api/v1/persistentvolumeclaims", nil, &claims); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Spec.StorageClassName == class && claim.Status.Phase == "Pending" && claim.Spec.VolumeName == "" {
			if err := p.provide(claim); err != nil {
				return fmt.Errorf("cannot provide claim %s/%s: %w", claim.Metadata.Namespace, claim.Metadata.Name, err)
			}
		}
	}
	if err := p.do(http.MethodGet, "/api/v1/persistentvolumes", nil, &volumes); err != nil {
		return err
	}
	for _, volume := range volumes.Items {
		if volume.Spec.StorageClassName == class && volume.Status.Phase == "Released" {
			if err := p.remove(volume); err != nil {
				return fmt.Errorf("cannot remove volume %s: %w", volume.Metadata.Name, err)
			}
		}
	}
	return nil
}

// provide makes a folder and its volume, both named after the claim's UID, so
// that a second look changes nothing.
func (p *provisioner) provide(claim object) error {
	name := "folder-" + claim.Metadata.UID
	folder := filepath.Join(p.folders, name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// Any user of any pod may write: a hostPath knows no fsGroup.
	if err := os.Chmod(folder, 0o777); err != nil {
		return err
	}
	volume := map[string]any{
		"apiVersion": "v1",
		"kind":       "PersistentVolume",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"storageClassName":              class,
			"capacity":                      claim.Spec.Resources.Requests,
			"accessModes":                   claim.Spec.AccessModes,
			"persistentVolumeReclaimPolicy": "Retain",
			"hostPath":                      map[string]any{"path": folder, "type": "Directory"},
			"claimRef": map[string]any{
				"apiVersion": "v1",
				"kind":       "PersistentVolumeClaim",
				"namespace":  claim.Metadata.Namespace,
				"name":       claim.Metadata.Name,
				"uid":        claim.Metadata.UID,
			},
		},
	}
	err := p.do(http.MethodPost, "/api/v1/persistentvolumes", volume, nil)
	var refused *status
	if errors.As(err, &refused) && refused.code == http.StatusConflict {
		return nil
	}
	if err == nil {
		log.Printf("made %s for %s/%s", name, claim.Metadata.Namespace, claim.Metadata.Name)
	}
	return err
}

func (p *provisioner) remove(volume object) error {
	if filepath.Dir(volume.Spec.HostPath.Path) != filepath.Clean(p.folders) {
		return fmt.Errorf("%s is not one of ours", volume.Spec.HostPath.Path)
	}
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return err
	}
	log.Printf("removed %s", volume.Metadata.Name)
	precondition := map[string]any{"preconditions": map[string]any{"uid": volume.Metadata.UID}}
	return p.do(http.MethodDelete, "/api/v1/persistentvolumes/"+volume.Metadata.Name, precondition, nil)
}

// status is an answer of the API server that is not a success.
type status struct {
	code int
	text string
}

func (s *status) Error() string { return s.text }

func (p *provisioner) do(method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(context.Background(), method, p.server+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return &status{response.StatusCode, fmt.Sprintf("%s %s: %s", method, path, response.Status)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(content, out)
}
