;;; more.el --- What only this agent has, with acp.el, told as JSON  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by Emacs in batch mode with acp.el on the load path.  ACP_AGENT is the agent's command line, as a JSON list; FILE is a file that
;; is open; PROMPTS are what is said in one session, a JSON list.  Emacs writes what the agent edits, but for files that are named
;; `rejected'; it serves its open files as tools; and it has sessions of subagents, of which it cancels the one that is titled `stopped'.
;; Then it loads the end of the session, and reads what is earlier.

;;; Code:

(require 'acp)
(require 'cl-lib)
(require 'let-alist)
(load (expand-file-name "server/editor-server" (file-name-directory load-file-name)) nil t)

(defvar client nil "The connection.")
(defvar updates nil "The params of all updates, newest first.")
(defvar reviewed nil "The names of the files that Emacs was to write, newest first.")
(defvar failure nil "What went wrong.")

(defun write (path text)
  "Write TEXT to PATH as a user would: in the buffer of the file, which is saved."
  (with-current-buffer (find-file-noselect path)
    (erase-buffer)
    (insert text)
    (save-buffer)))

(defun answer (request)
  "Answer REQUEST of the agent."
  (let-alist request
    (pcase .method
      ("session/request_permission"
       (let ((allow (cl-find "allow_once" .params.options :test #'equal :key (lambda (option) (map-elt option 'kind)))))
         (acp-make-session-request-permission-response :request-id .id :option-id (map-elt allow 'optionId))))
      ("fs/read_text_file"
       (acp-make-fs-read-text-file-response
        :request-id .id
        :content (if (file-exists-p .params.path)
                     (with-current-buffer (find-file-noselect .params.path) (buffer-string))
                   "")))
      ("fs/write_text_file"
       (push (file-name-nondirectory .params.path) reviewed)
       (unless (string-match-p "rejected" .params.path)
         (write .params.path .params.content))
       (acp-make-fs-write-text-file-response :request-id .id))
      ("mcp/message" `((:request-id . ,.id) (:result . ,(editor-server-answer .params))))
      (_ (setq failure (format "%s was not expected" .method)) nil))))

(defun connect ()
  "Start the agent, and say hello; what it can do."
  (let ((agent (json-parse-string (getenv "ACP_AGENT") :array-type 'list)))
    (setq client (acp-make-client :command (car agent) :command-params (append (cdr agent) '("--review-edits"))))
    (acp-subscribe-to-notifications
     :client client :on-notification (lambda (notification) (push (map-elt notification 'params) updates)))
    (acp-subscribe-to-requests
     :client client :on-request
     (lambda (request)
       (when-let* ((response (answer request)))
         (acp-send-response :client client :response response))))
    (let ((hello (acp-make-initialize-request :protocol-version 1 :read-text-file-capability t :write-text-file-capability t)))
      (nconc (map-nested-elt hello '(:params clientCapabilities)) `((subagents . ,(make-hash-table))))
      (ask hello))))

(defun until (what holds)
  "Wait until the function HOLDS returns something, which is returned, or something went wrong: WHAT did not come."
  (let ((ends (+ (float-time) 60)) found)
    (while (not (or failure (setq found (funcall holds))))
      (when (> (float-time) ends)
        (setq failure (format "%s did not come" what)))
      (accept-process-output nil 0.02))
    found))

(defun ask (request)
  "Send REQUEST and wait for its answer."
  (let (answer)
    (acp-send-request :client client :request request
                      :on-success (lambda (response) (setq answer (or response t)))
                      :on-failure (lambda (why &rest _) (setq failure (format "%S" why))))
    (until (map-elt request :method) (lambda () answer))))

(defun said (&optional session)
  "What was said in SESSION."
  (mapconcat
   (lambda (params)
     (if (and (equal (map-nested-elt params '(update sessionUpdate)) "agent_message_chunk")
              (equal (map-elt params 'sessionId) session))
         (map-nested-elt params '(update content text))
       ""))
   (reverse updates) ""))

(defun child (title)
  "The session of the subagent with this TITLE."
  (cl-some (lambda (params)
             (let-alist params
               (and (equal .update.sessionUpdate "subagent_update") (equal .update.title title) .update.sessionId)))
           updates))

(defun end (child)
  "How the subagent of the session CHILD ended."
  (cl-some (lambda (params)
             (let-alist params
               (and (equal .update.sessionUpdate "subagent_update") (equal .update.sessionId child)
                    (equal .update.state.state "idle") .update.state.stopReason)))
           updates))

(find-file (getenv "FILE"))
(connect)
(let* ((cwd default-directory)
       (session (map-elt (ask (acp-make-session-new-request :cwd cwd :mcp-servers (vector editor-server-entry))) 'sessionId))
       told)
  (dolist (text (json-parse-string (getenv "PROMPTS") :array-type 'list))
    (ask (acp-make-session-prompt-request :session-id session :prompt `[((type . "text") (text . ,text))])))
  (push `(said . ,(said session)) told)
  (let ((stopped (until "a subagent" (lambda () (child "stopped")))))
    (acp-send-notification :client client :notification (acp-make-session-cancel-notification :session-id stopped))
    (push `(stopped . ,(or (until "its end" (lambda () (end stopped))) :null)) told))
  (acp-shutdown :client client)

  (setq updates nil)
  (connect)
  (let* ((replay '((claudeCode (replay (limit . 1)))))
         (loaded (ask (acp-make-session-load-request :session-id session :cwd cwd :meta replay)))
         (before (map-nested-elt loaded '(_meta claudeCode replay before)))
         (page (ask `((:method . "_session/history")
                      (:params (sessionId . ,session) (cwd . ,(directory-file-name cwd)) (before . ,before))))))
    (push `(replayed . ,(said session)) told)
    (setq updates (nreverse (mapcar (lambda (update) `((sessionId . ,session) (update . ,update))) (map-elt page 'updates))))
    (push `(earlier . ,(said session)) told))
  (acp-shutdown :client client)
  (princ (json-encode `(,@told (reviewed . ,(vconcat (reverse reviewed))) (failure . ,failure)))))

;;; more.el ends here
