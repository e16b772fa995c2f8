// Images packs programs into container images and pushes them to the cluster's
// registry, each only if it changed since. It prints a line for each image:
// its name, and the reference by digest to run.
//
//	images -registry HOST:PORT -known FILE NAME=PROGRAM[,PROGRAM]...
//
// A NAME without a PROGRAM is the base image, which ko puts its programs on: a
// user that is not root, /tmp, and the certificates of this machine. Several
// PROGRAMs are put into /usr/local/bin, and none of them is what the image runs.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const certificates = "/etc/ssl/certs/ca-certificates.crt"

func main() {
	registry := flag.String("registry", "", "where to push to, by plain http")
	known := flag.String("known", "", "file that remembers what was pushed")
	flag.Parse()
	log.SetFlags(0)

	pushed := readKnown(*known)
	now := map[string]string{}
	for _, arg := range flag.Args() {
		image, list, _ := strings.Cut(arg, "=")
		programs := strings.Split(list, ",")
		stamps := make([]string, len(programs))
		for i, program := range programs {
			stamps[i] = stamp(program)
		}
		key := image + " " + strings.Join(stamps, " ")
		reference, ok := pushed[key]
		if !ok || !served(reference) {
			var err error
			if reference, err = push(*registry+"/"+image, programs); err != nil {
				log.Fatalf("cannot push %s: %v", image, err)
			}
			log.Printf("pushed %s", image)
		}
		now[key] = reference
		fmt.Println(image, reference)
	}
	if err := writeKnown(*known, now); err != nil {
		log.Fatal(err)
	}
}

// stamp tells one build of a program from the next.
func stamp(program string) string {
	if program == "" {
		program = certificates
	}
	info, err := os.Stat(program)
	if errors.Is(err, fs.ErrNotExist) && program == certificates {
		return "none"
	}
	if err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
}

// served asks the registry: its folder may be a new one.
func served(reference string) bool {
	digest, err := name.NewDigest(reference)
	if err != nil {
		return false
	}
	_, err = remote.Head(digest)
	return err == nil
}

func push(image string, programs []string) (string, error) {
	tag, err := name.NewTag(image + ":latest")
	if err != nil {
		return "", err
	}
	built, err := build(programs)
	if err != nil {
		return "", err
	}
	if err := remote.Write(tag, built); err != nil {
		return "", err
	}
	digest, err := built.Digest()
	if err != nil {
		return "", err
	}
	return image + "@" + digest.String(), nil
}

// build makes an image of one layer, the same for the same programs. The layer
// is not compressed: it goes from this machine to this machine.
func build(programs []string) (v1.Image, error) {
	layer, entrypoint, err := pack(programs)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.User = "65532:65532"
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	config.Config.Entrypoint = entrypoint
	return mutate.ConfigFile(image, config)
}

func pack(programs []string) (layer []byte, entrypoint []string, err error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, kind byte, mode int64, content []byte) {
		header := &tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err == nil {
			err = w.WriteHeader(header)
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	add("tmp/", tar.TypeDir, 0o1777, nil)
	add("etc/", tar.TypeDir, 0o755, nil)
	add("etc/passwd", tar.TypeReg, 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"))
	add("etc/group", tar.TypeReg, 0o644, []byte("root:x:0:\nnonroot:x:65532:\n"))
	folder := ""
	if len(programs) > 1 {
		folder = "usr/local/bin/"
	} else if programs[0] != "" {
		entrypoint = []string{"/" + path.Base(programs[0])}
	}
	for _, program := range programs {
		if program == "" {
			continue
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, nil, err
		}
		add(folder+path.Base(program), tar.TypeReg, 0o755, content)
	}
	if entrypoint != nil {
		return out.Bytes(), entrypoint, errors.Join(err, w.Close())
	}
	if content, err := os.ReadFile(certificates); err == nil {
		add("etc/ssl/", tar.TypeDir, 0o755, nil)
		add("etc/ssl/certs/", tar.TypeDir, 0o755, nil)
		add("etc/ssl/certs/ca-certificates.crt", tar.TypeReg, 0o644, content)
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), entrypoint, err
}

// readKnown reads lines of an image, its programs' stamps and its reference.
func readKnown(file string) map[string]string {
	known := map[string]string{}
	content, err := os.ReadFile(file)
	if err != nil {
		return known
	}
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) >= 3 {
			known[strings.Join(f[:len(f)-1], " ")] = f[len(f)-1]
		}
	}
	return known
}

func writeKnown(file string, known map[string]string) error {
	var out strings.Builder
	for key, reference := range known {
		fmt.Fprintln(&out, key, reference)
	}
	if err := os.WriteFile(file+".new", []byte(out.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
