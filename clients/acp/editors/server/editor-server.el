;;; editor-server.el --- Emacs' diagnostics, selection and open files as an MCP server  -*- lexical-binding: t; -*-

;;; Commentary:

;; For agents of the Agent Client Protocol with `mcpCapabilities.acp'.  An ACP package adds `editor-server-entry' to `mcpServers' of
;; its sessions, and answers each request `mcp/message' with what `editor-server-answer' returns for its params: the result of the
;; response, in which a failure is an `error'.  docs/acp-extensions.md has the contract; tools.json, beside this file, the tools.
;; Params are alists, as `json-parse-string' makes them with `:object-type' `alist'; answers are for `json-serialize'.

;;; Code:

(require 'cl-lib)
(require 'flymake)

(defconst editor-server-here (file-name-directory (or load-file-name buffer-file-name)))

(defconst editor-server-entry '((type . "acp") (name . "editor") (serverId . "editor"))
  "The entry for `mcpServers'.
Claude Code keeps the name `ide' for itself, and hides the tools of such a server.")

(defun editor-server--buffers ()
  "The buffers of files."
  (cl-remove-if-not #'buffer-file-name (buffer-list)))

(defun editor-server--severity (diagnostic)
  "The severity of a Flymake DIAGNOSTIC."
  (let ((level (flymake--lookup-type-property (flymake-diagnostic-type diagnostic) 'severity (warning-numeric-level :error))))
    (cond ((>= level (warning-numeric-level :error)) "error")
          ((>= level (warning-numeric-level :warning)) "warning")
          (t "information"))))

(defun editor-server--diagnostics (arguments)
  "The diagnostics of the file in ARGUMENTS, or of all."
  (let ((wanted (alist-get 'path arguments)) found)
    (dolist (buffer (editor-server--buffers))
      (with-current-buffer buffer
        (when (and (or (null wanted) (file-equal-p wanted buffer-file-name)) (bound-and-true-p flymake-mode))
          (save-restriction
            (widen)
            (dolist (diagnostic (flymake-diagnostics))
              (save-excursion
                (goto-char (flymake-diagnostic-beg diagnostic))
                (push `((path . ,buffer-file-name)
                        (line . ,(line-number-at-pos))
                        (column . ,(1+ (current-column)))
                        (severity . ,(editor-server--severity diagnostic))
                        ,@(let ((backend (flymake-diagnostic-backend diagnostic)))
                            (and backend (symbolp backend) `((source . ,(symbol-name backend)))))
                        (message . ,(flymake-diagnostic-text diagnostic)))
                      found)))))))
    `((diagnostics . ,(vconcat (nreverse found))))))

(defun editor-server--shown ()
  "The buffer of the file that the user looks at: a chat is no file."
  (cl-find-if #'buffer-file-name
              (append (list (window-buffer)) (mapcar #'window-buffer (window-list)) (editor-server--buffers))))

(defun editor-server--selection (_arguments)
  "The file that the user looks at, the line, and the selected text."
  (let ((buffer (editor-server--shown)))
    (if (null buffer)
        (make-hash-table)
      (with-current-buffer buffer
        (save-restriction
          (widen)
          `((path . ,buffer-file-name)
            (line . ,(line-number-at-pos))
            ,@(when (region-active-p)
                `((startLine . ,(line-number-at-pos (region-beginning)))
                  (endLine . ,(line-number-at-pos (region-end)))
                  (text . ,(buffer-substring-no-properties (region-beginning) (region-end)))))))))))

(defun editor-server--open-files (_arguments)
  "The open files."
  (let ((active (editor-server--shown)))
    `((files . ,(vconcat (mapcar (lambda (buffer)
                                   (with-current-buffer buffer
                                     `((path . ,buffer-file-name)
                                       (isActive . ,(if (eq buffer active) t :false))
                                       (isModified . ,(if (buffer-modified-p) t :false))
                                       (language . ,(string-remove-suffix "-mode" (symbol-name major-mode))))))
                                 (editor-server--buffers)))))))

(defconst editor-server--tools
  '(("get_diagnostics" . editor-server--diagnostics)
    ("get_selection" . editor-server--selection)
    ("get_open_files" . editor-server--open-files)))

(defun editor-server--json (value)
  "VALUE as text of JSON."
  (decode-coding-string (json-serialize value :false-object :false) 'utf-8))

(defun editor-server--call (params)
  "Call the tool that PARAMS names."
  (let ((tool (alist-get (alist-get 'name params) editor-server--tools nil nil #'equal)))
    (if (null tool)
        `((error (code . -32602) (message . ,(format "there is no tool %s" (alist-get 'name params)))))
      (condition-case failure
          (let ((told (funcall tool (alist-get 'arguments params))))
            `((result (resultType . "complete")
                      (structuredContent . ,told)
                      (content . ,(vector `((type . "text") (text . ,(editor-server--json told))))))))
        (error `((result (resultType . "complete")
                         (isError . t)
                         (content . ,(vector `((type . "text") (text . ,(error-message-string failure))))))))))))

(defun editor-server-answer (params)
  "The result of the response to a request `mcp/message' with PARAMS."
  (pcase (alist-get 'method params)
    ("server/discover"
     `((result (resultType . "complete")
               (supportedVersions . ["2026-07-28"])
               (capabilities (tools . ,(make-hash-table)))
               (serverInfo (name . "editor") (version . ,emacs-version))
               (ttlMs . 0)
               (cacheScope . "private"))))
    ("tools/list"
     (let ((tools (with-temp-buffer
                    (insert-file-contents (expand-file-name "tools.json" editor-server-here))
                    (json-parse-buffer))))
       `((result (resultType . "complete") (tools . ,tools) (ttlMs . 0) (cacheScope . "private")))))
    ("tools/call" (editor-server--call (alist-get 'params params)))
    (method `((error (code . -32601) (message . ,(format "there is no method %s" method)))))))

(provide 'editor-server)
;;; editor-server.el ends here
